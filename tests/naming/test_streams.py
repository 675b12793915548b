"""The internal topics of Streams applications, by the names that Kafka's StreamsResetter knows."""

from __future__ import annotations

import pytest

from airmirror.naming import is_internal_of, is_purged
from airmirror.naming.replicated import is_internal_of_any

APPLICATION = "app.1"


@pytest.mark.parametrize(
    ("topic", "internal", "purged"),
    [
        ("app.1-counts-changelog", True, False),
        ("app.1-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog", True, False),
        ("app.1-words-repartition", True, True),
        ("app.1-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic", True, True),
        ("app.1-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic", True, True),
        ("app.1-join-subscription-registration-topic", True, True),
        ("app.1-join-subscription-response-topic", True, True),
        ("app.1-changelog", True, False),
        ("app.1-orders", False, False),
        ("app.1-topic", False, False),
        ("app.1", False, False),
        ("app-1-counts-changelog", False, False),
        ("app.10-counts-changelog", False, False),
        ("counts-changelog", False, False),
    ],
)
def test_internal_topics(topic: str, internal: bool, purged: bool) -> None:
    assert is_internal_of(APPLICATION, topic) is internal
    assert is_internal_of_any(("other", APPLICATION), topic) is internal
    assert is_purged((APPLICATION,), topic) is purged
    assert not is_internal_of_any((), topic)
