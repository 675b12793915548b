"""Other versions of Kafka, both sides: the same scenarios on each; the suite of faults against 3.9 (docs/compatibility.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from tenacity import Retrying, retry_if_exception_type, stop_after_delay

from airmirror.clusters.protocol.routes import Routes
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.intake import Intake
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from airmirror_local.certificates import authority
from airmirror_local.jars import KAFKA_VERSION, JarsNotResolved, resolve
from airmirror_local.zookeeper import old_broker
from flows import test_takeover, test_takeover_mirrormaker
from offsets import test_groups
from support.faults import filled, in_a_process_that_dies, records
from support.flows import in_this_process, mirror
from support.mirrormaker import dedicated
from support.topics import create_topic, delete_topic, produce
from windows import test_faults, test_leases

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

Pair = tuple[Broker, Broker]

OLDEST, OLDER, FIRST_WITHOUT_ZOOKEEPER = "2.8.2", "3.9.1", "4.0.0"
NEARBY = ("4.1.1", "4.3.0", "4.4.0")  # the version before that of all other tests, and those after it
FAULTS = ("faults", "transactions", "access", "dead_letters", "leaders", "truncated", "targets")
FETCH = {OLDEST: 12, OLDER: 13, FIRST_WITHOUT_ZOOKEEPER: 13} | dict.fromkeys(
    (*NEARBY, KAFKA_VERSION), 13
)  # by topic ids
SECRET = "key-secret"
SECOND_PROTOCOL = {FIRST_WITHOUT_ZOOKEEPER, *NEARBY, KAFKA_VERSION}  # of transactions


@pytest.mark.parametrize("name", FAULTS)
def test_the_faults_on_an_older_kafka(name: str) -> None:
    (tests,) = Path(__file__).parent.rglob(f"test_{name}.py")
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", str(tests)],
        env=os.environ | {"KAFKA_VERSION": OLDER},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-5000:]


@pytest.fixture(scope="module", params=[OLDEST, OLDER, FIRST_WITHOUT_ZOOKEEPER, *NEARBY, KAFKA_VERSION])
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two clusters of an old Kafka, with a listener ``TLS`` that asks for a certificate."""
    directory, version, signs = tmp_path_factory.mktemp("old"), request.param, authority()
    if version == NEARBY[-1]:  # mirrors of Maven Central lack files of what is a few days old
        try:
            resolve(version=version)
        except JarsNotResolved as lacking:
            pytest.skip(str(lacking))
    own = signs.signs("broker", "127.0.0.1")
    (directory / "authority.pem").write_text(signs.pem)
    (directory / "broker.p12").write_bytes(
        own.pkcs12(SECRET)
    )  # of PEM files 2.8 wants encrypted keys, which Java can't read
    client = signs.signs("mirror")
    (directory / "client.pem").write_text(client.key_pem() + client.pem)
    tls = IMPATIENT | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "authority.pem"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(directory / "broker.p12"),
        "ssl.keystore.password": SECRET,
        "ssl.key.password": SECRET,
        "listener.name.tls.ssl.client.auth": "required",
    }
    with ExitStack() as stack:
        if version == OLDEST:
            yield tuple(  # type: ignore[misc]
                stack.enter_context(old_broker(directory, name, version, tls, listeners={"TLS": "SSL"}))
                for name in ("a", "b")
            )
            return
        found = []
        for name in ("a", "b"):
            found.append(start_broker(directory, name, tls, listeners={"TLS": "SSL"}, version=version))
            stack.callback(found[-1].kill)
        yield found[0], found[1]


def test_a_window_on_an_old_kafka(old: Pair, tmp_path: Path) -> None:
    """By names where Fetch 13 is not known, in the first protocol before 4.0; a slot is killed in its transaction."""
    flow = filled(*old, tmp_path, 2000)
    with Routes(flow.flow.source, "test") as routes:
        routes.refresh([flow.topic])
        connection = routes.connection(routes.nodes[0], "test")
        assert connection.fetch_version == FETCH[old[0].version]
        assert (connection.features.get("transaction.version", 0) >= 2) is (old[0].version in SECOND_PROTOCOL)

    def killed_once(slots: Sequence[Slot]) -> list[SlotResult]:
        in_a_process_that_dies(slots, 2)
        return in_this_process(slots)

    assert flow.run(killed_once).is_verified
    assert flow.assert_equal() == 2100


def test_tls_on_an_old_kafka(old: Pair, tmp_path: Path) -> None:
    directory = old[0].directory.parent
    access = tuple(
        {
            "bootstrap.servers": broker.listeners["TLS"],
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "authority.pem"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "client.pem"),
        }
        for broker in old
    )
    flow = mirror(*old, tmp_path, partitions=2, access=(access[0], access[1]))
    produce(old[0], flow.topic, records(1000))
    assert flow.run().is_verified and flow.assert_equal() == 1000


def test_a_take_over_on_an_old_kafka(old: Pair, tmp_path: Path) -> None:
    test_takeover.test_three_times_there_and_back(*old, tmp_path)


def test_groups_on_an_old_kafka(old: Pair, tmp_path: Path, topic: Callable[[str], str]) -> None:
    """A group fails over and back, of transactions and plain records, and reads every record once."""
    test_groups.test_a_group_fails_over_and_back_and_reads_every_record_once(
        *old, tmp_path, test_groups.mixed, "classic", topic
    )


def test_its_own_mirrormaker_2_on_an_old_kafka(old: Pair, tmp_path: Path) -> None:
    """The real one of that version: killed in mid-stream, taken over, handed back, killed, and taken over again."""
    flow, again, version = mirror(*old, tmp_path, partitions=2), 0, old[0].version
    with test_takeover_mirrormaker.producing(flow, 2):
        for number in range(2):
            with dedicated(flow, tmp_path, version=version) as process:
                test_takeover_mirrormaker.await_more_once_there(flow, process, first=number == 0)
                if number:
                    test_takeover_mirrormaker.assert_resumes(flow)
                process.kill()
            again += sum(row.again for row in test_takeover_mirrormaker.taken_over(flow))
    assert flow.run().is_verified
    test_takeover_mirrormaker.assert_complete(flow, again)


def test_the_fence_on_an_old_kafka(old: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test_leases.test_a_window_that_has_renewed_its_lease_keeps_it(*old, tmp_path, monkeypatch)
    test_faults.test_a_stale_slot_is_fenced_by_a_new_window(*old, tmp_path)


def test_a_source_topic_created_again_in_mid_window_on_an_old_kafka(
    old: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a fetch by name answers from the new topic: it is noticed before the commit."""
    flow = filled(*old, tmp_path)
    take = Intake.take
    done = []

    def create_again(self: Intake, *args: object) -> None:
        take(self, *args)  # type: ignore[arg-type]
        if not done:
            done.append(True)
            delete_topic(flow.source, flow.topic)
            for attempt in Retrying(
                retry=retry_if_exception_type(KafkaException), stop=stop_after_delay(60), reraise=True
            ):
                with attempt:  # ZooKeeper's brokers delete in their own time
                    create_topic(flow.source, flow.topic, 2)
            produce(flow.source, flow.topic, records(6000))

    monkeypatch.setattr(Intake, "take", create_again)
    result = flow.run()
    errors = {type(row.error).__name__ for row in result.rows}
    # By topic ids what the first answer held is of the topic that was planned: its partition may be done with it.
    assert done and errors - ({"NoneType"} if FETCH[old[0].version] >= 13 else set()) == {"TopicRecreated"}
