"""Two clusters that have ACLs, for all tests of migrations, and short waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.acls import AUTHORIZER, EVERYBODY
from support.topics import admin
from support.waiting import short_waits

__all__ = ["guarded", "short_waits"]


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    """Two clusters with ACLs, by which everybody may do everything."""
    started: list[Broker] = []
    try:
        for name in ("guarded-east", "guarded-west"):
            started.append(start_broker(tmp_path_factory.mktemp(name), name, IMPATIENT | AUTHORIZER))
            for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
                anything = (kind, "*", ResourcePatternType.LITERAL, EVERYBODY, "*", AclOperation.ALL)
                made = AclBinding(*anything, AclPermissionType.ALLOW)
                for future in admin(started[-1]).create_acls([made]).values():
                    future.result(30)
        yield started
    finally:
        for broker in started:
            broker.kill()
