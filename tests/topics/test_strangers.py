"""A stranger's records in a mapping topic choose no code and no pattern, and stop no flow."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from airmirror.config import Flow, parse
from airmirror.ledger import Ledger
from airmirror.naming import TopicFilter, is_quick
from airmirror.naming.patterns import InvalidPattern
from airmirror.partitions import TopicPartition
from airmirror.topics import identity as module
from airmirror.topics.conflicts import MOST_NAMES, loop, refusals
from airmirror.topics.identity import Found, Neighbours, check, flows_of_others, identity
from airmirror.topics.strangers import LONGEST_RULES, MOST_FLOWS, nonsense
from airmirror.wire.batches import build
from airmirror.wire.batches import parse as parse_batches
from airmirror.wire.mappings import FlowIdentity, decode
from airmirror.wire.primitives import varint
from support.decoders import DECODERS, zigzag
from support.examples import examples
from support.fuzzing import guarded, mutated
from support.intakes import at
from support.ledgers import written

LINES = "clusters = east, west\neast.bootstrap.servers = e:9092\nwest.bootstrap.servers = w:9092\neast->west.enabled = true\n"
TOPIC = "airmirror-mappings.evil.internal"
DEFAULT = "DefaultReplicationPolicy"


def own() -> Flow:
    return parse(LINES + "topics = orders.*\n", "f").flow("east->west")


def around(*said: FlowIdentity) -> Neighbours:
    """As ``look_around`` finds it, from the bytes of records."""
    read = [decode(each.encode_key(), each.encode_value()) for each in said]
    warnings: list[str] = []
    found = module._of_others(
        [Found("east", TOPIC, each) for each in read if isinstance(each, FlowIdentity)], "", (), warnings
    )
    return Neighbours(
        source_id="id-east", target_id="id-west", into_source=found, into_target=(), own=None, warnings=tuple(warnings)
    )


def stranger(policy: str = DEFAULT, separator: str = ".", topics: tuple[str, ...] = (".*",)) -> FlowIdentity:
    return FlowIdentity(
        source="evil",
        target="west",
        source_cluster_id="attacker-1",
        target_cluster_id="id-east",
        time_ms=0,
        policy=policy,
        separator=separator,
        topics=topics,
    )


def planned(*said: FlowIdentity) -> tuple[tuple[Flow, ...], tuple[str, ...]]:
    """What a plan makes of it, with topics of the longest names; it must not raise."""
    neighbours = around(*said)
    check(own(), neighbours)
    identity(own(), neighbours).encode_value()
    flows, warnings = flows_of_others(own(), neighbours, {"east->west"})
    topics = {f"orders-{number}".ljust(249, "a"): "east.orders" for number in range(20)}
    refusals(own(), topics, flows, {})
    return flows, warnings


@pytest.mark.parametrize(
    "policy", ["planted:sink", "this:s", "venv.__main__:main", "nope:nope", "os.path", "", "a" * 9999]
)
def test_no_policy_is_imported(policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text("def sink(**given):\n    raise SystemExit('called')\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    flows, warnings = planned(stranger(policy))
    assert not flows and len(warnings) == bool(policy)  # an identity without a policy never told its rules
    assert not {"planted", "this", "venv.__main__"} & (set(sys.modules) - before)


@pytest.mark.parametrize(
    "pattern",
    ["(", "((.|.)+)+!", "(.*-)?(a|aa)+b", ".*.*.*.*.*!", "(?s).*", "[z-a]", "a{1000}", "a" * (LONGEST_RULES + 1)],
)
def test_no_pattern_that_may_take_long_is_matched(pattern: str) -> None:
    with guarded(60, 600):
        flows, (warning,) = planned(stranger(topics=(pattern,)))
    assert not flows and "'evil->west' of another configuration is left out" in warning and len(warning) < 400


@pytest.mark.parametrize("separator", ["", "|", "\n", "a" * 300, "é"])
def test_no_separator_that_a_configuration_could_not_have(separator: str) -> None:
    flows, (warning,) = planned(stranger(separator=separator))
    assert not flows and "replication.policy.separator" in warning and "\n" not in warning


@pytest.mark.parametrize(
    "said",
    [
        FlowIdentity(
            source="evil\x1b]0;title\x07",
            target="west",
            source_cluster_id="a",
            target_cluster_id="b",
            time_ms=0,
            policy=DEFAULT,
        ),
        FlowIdentity(
            source="evil",
            target="west\nx.replication.policy.class = os:system",
            source_cluster_id="a",
            target_cluster_id="b",
            time_ms=0,
            policy=DEFAULT,
        ),
        FlowIdentity(
            source="evil", target="west", source_cluster_id="a\x00", target_cluster_id="b", time_ms=0, policy=DEFAULT
        ),
        FlowIdentity(
            source="evil",
            target="west",
            source_cluster_id="a",
            target_cluster_id="b",
            time_ms=0,
            policy=DEFAULT,
            upstream=(("x y", "id-west"),),
        ),
        FlowIdentity(
            source="evil",
            target="west",
            source_cluster_id="a",
            target_cluster_id="b",
            time_ms=0,
            policy=DEFAULT,
            upstream=(("x", "i"),) * 1001,
        ),
    ],
)
def test_aliases_and_ids_that_are_none_do_not_count(said: FlowIdentity) -> None:
    assert nonsense(said)
    flows, (warning,) = planned(said)
    assert not flows and TOPIC in warning and warning.isprintable() and len(warning) < 500


def test_what_airmirror_writes_itself_counts() -> None:
    """The rules of an ordinary flow, by default and as people write them, are followed as before."""
    flow = own()
    for lines in ("", "topics = orders, pay.*\\\\.eu, [a-z]+\ntopics.exclude = .*[\\\\-\\\\.]internal, __.*\n"):
        given = parse(LINES + lines, "f").flow("east->west")
        assert all(map(is_quick, (*given.topics, *given.topics_exclude))), given.topics_exclude
        said = FlowIdentity(
            source="b",
            target="east",
            source_cluster_id="id-b",
            target_cluster_id="id-east",
            time_ms=0,
            policy=given.replication_policy_class,
            separator=given.replication_policy_separator,
            topics=given.topics,
            topics_exclude=given.topics_exclude,
            upstream=(("a", "id-a"),),
        )
        assert not nonsense(said)
        (found,), warnings = flows_of_others(flow, around(said), ())
        assert not warnings and (found.name, found.topics) == ("b->east", given.topics)


def test_strangers_beyond_a_number_are_left_out() -> None:
    flows, warnings = planned(*[stranger()] * (MOST_FLOWS + 5))
    assert len(flows) == MOST_FLOWS and len(warnings) == 5


def test_no_crowd_of_strangers_hides_the_reverse_flow() -> None:
    """A hundred are looked at: the one whose topic only the reverse flow has, and those between the same clusters, come first."""
    identity_policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

    def said(topic: str, source: str, source_id: str) -> Found:
        whose = replace(stranger(identity_policy), source=source, target="east", source_cluster_id=source_id)
        return Found("east", topic, whose)

    crowd = [said(f"airmirror-mappings.a{each}.internal", f"a{each}", f"x{each}") for each in range(MOST_FLOWS + 5)]
    back = said("airmirror-mappings.west.internal", "west", "id-other")  # whatever it says of itself
    beside = said("airmirror-mappings.w2.internal", "w2", "id-west")
    neighbours = replace(around(), into_source=(*crowd, beside, back))
    flows, warnings = flows_of_others(own(), neighbours, {"east->west"})
    assert [each.source.alias for each in flows[:2]] == ["west", "west"] and len(flows) == MOST_FLOWS
    assert all("'a" in each for each in warnings) and len(warnings) == 7


def test_a_look_that_is_cut_continues_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's topic may be huge: what was read of it is noted a part at a time."""
    body = b"\0" + varint(0) * 2 + varint(1) + b"k" + varint(1) + b"v" + varint(0)
    read: list[int] = []

    def batches(_: object, __: object, start: int, end: int, **___: object) -> Iterator[object]:
        for offset in range(start, end):
            if len(read) == 5:
                raise TimeoutError
            read.append(offset)
            view = memoryview(at(offset, build(varint(len(body)) + body, count=1, base_timestamp=1, max_timestamp=1)))
            yield view, [(batch, False) for batch in parse_batches(view, 0, len(view))]

    monkeypatch.setattr(module, "read_batches", batches)
    monkeypatch.setattr(module, "PART", 0)
    monkeypatch.setattr(module, "connect", lambda _: SimpleNamespace(topic_names=lambda: [TOPIC]))
    monkeypatch.setattr(module, "offsets_with_patience", lambda _, found, __: dict.fromkeys(found, 8))
    routes: Any = SimpleNamespace(
        alias="east",
        cluster=None,
        topic_ids={TOPIC: UUID(int=7)},
        refresh_existing=lambda _: {},
        with_leader=lambda found, _: found,
    )
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    with pytest.raises(TimeoutError):
        module._identities(routes, ledger.flow("east->west"), [])
    read.clear()
    module._identities(routes, ledger.flow("east->west"), [])
    assert read == [4, 5, 6, 7]
    module._identities(routes, ledger.flow("east->west"), [])
    assert read == [4, 5, 6, 7], "all of it is noted"
    ledger.close()


def test_names_that_branch_without_end_are_followed_to_an_end() -> None:
    """Flows there and back whose separators differ make new names at every step, twice as many at each."""
    said = [
        FlowIdentity(
            source=source,
            target=target,
            source_cluster_id=f"id-{source}",
            target_cluster_id=f"id-{target}",
            time_ms=0,
            policy=DEFAULT,
            separator=f"{source}{number}",
            topics=(".*",),
        )
        for source, target in (("west", "x"), ("x", "west"))
        for number in range(5)
    ]
    flows, _ = flows_of_others(own(), around(*said), ())
    assert len(flows) == 10
    with guarded(120, 600):
        assert loop(own(), "orders", "east.orders", flows, 1000) == ()
    assert MOST_NAMES >= 1000


@given(
    st.builds(
        FlowIdentity,
        st.text(),
        st.text(),
        st.text(),
        st.text(),
        st.integers(0, 2**40),
        st.text(),
        st.text(),
        st.lists(st.text()).map(tuple),
        st.lists(st.text()).map(tuple),
        st.lists(st.tuples(st.text(), st.text())).map(tuple),
    )
)
@examples(200)
def test_whatever_it_says(said: FlowIdentity) -> None:
    try:
        said.encode_value()
    except UnicodeEncodeError:
        return
    planned(said)


@given(st.text(alphabet="ab.*+?[]\\-()|", max_size=30))
@examples(500)
def test_a_quick_pattern_has_one_repetition_and_no_group(pattern: str) -> None:
    if is_quick(pattern):
        outside = pattern.replace("\\\\", "").replace("\\.", "").replace("\\-", "")
        assert sum(map(outside.count, "*+?")) <= 1 and not set("()|") & set(outside)
        with suppress(InvalidPattern):
            TopicFilter((pattern,), ()).matches("a" * 249)


def scanned(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[object], str]:
    view = memoryview(data)

    def batches(*_: object, **__: object) -> Iterator[object]:
        yield view, [(batch, False) for batch in parse_batches(view, 0, len(view))]

    monkeypatch.setattr(module, "read_batches", batches)
    parts = list(module._scan(None, TopicPartition(TOPIC, 0), 0, 2**63 - 1))  # type: ignore[arg-type]
    return [entry for found, _, _ in parts for entry in found], "".join(reason for _, _, reason in parts)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
@examples(50)
def test_whenever_it_says_it(base: int, when: int) -> None:
    """The times of a batch are its producer's: what is read of them a ledger keeps."""
    said = stranger()
    key, value = said.encode_key(), said.encode_value()
    delta = (when - base + 2**63) % 2**64 - 2**63
    body = b"\0" + zigzag(delta) + varint(0) + varint(len(key)) + key + varint(len(value)) + value + varint(0)
    view = memoryview(build(varint(len(body)) + body, count=1, base_timestamp=base, max_timestamp=when))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as directory:
        patch.setattr(module, "connect", lambda _: SimpleNamespace(topic_names=lambda: [TOPIC]))
        patch.setattr(module, "offsets_with_patience", lambda _, found, __: dict.fromkeys(found, 1))
        log = [(view, [(batch, False) for batch in parse_batches(view, 0, len(view))])]
        patch.setattr(module, "read_batches", lambda *_, **__: log)
        routes: Any = SimpleNamespace(
            alias="east",
            cluster=None,
            topic_ids={TOPIC: UUID(int=7)},
            refresh_existing=lambda _: {},
            with_leader=lambda found, _: found,
        )
        warnings: list[str] = []
        ledger = Ledger(f"sqlite:///{directory}/ledger.db")
        (found,) = module._identities(routes, ledger.flow("east->west"), warnings)
        ledger.close()
    assert found.identity == said and not warnings


def test_an_identity_that_no_ledger_keeps_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, said = Ledger(f"sqlite:///{tmp_path}/ledger.db"), stranger()
    own = written(0, said)
    logs = {
        "airmirror-mappings.evil.internal": replace(own, timestamp=-(2**80)),
        "airmirror-mappings.ours.internal": own,
    }
    routes: Any = SimpleNamespace(
        alias="east",
        cluster=None,
        topic_ids=dict.fromkeys(logs, UUID(int=7)),
        refresh_existing=lambda _: {},
        with_leader=lambda found, _: found,
    )
    monkeypatch.setattr(module, "connect", lambda _: SimpleNamespace(topic_names=lambda: list(logs)))
    monkeypatch.setattr(module, "offsets_with_patience", lambda _, found, __: dict.fromkeys(found, 1))
    monkeypatch.setattr(module, "_scan", lambda _, log, *__: [([logs[log.topic]], 1, "")])
    warnings: list[str] = []
    (found,) = module._identities(routes, ledger.flow("east->west"), warnings)
    assert found.topic == "airmirror-mappings.ours.internal" and found.identity == said
    assert len(warnings) == 1 and "evil" in warnings[0] and "can't keep it" in warnings[0]
    ledger.close()


def test_a_record_that_brokers_take_and_nobody_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"\0" + varint(0) * 2 + varint(1) + b"\5" + varint(1) + b"x" + varint(1) * 2 + b"\xff" + varint(0)
    batch = build(varint(len(body)) + body, count=1, base_timestamp=1, max_timestamp=1)
    found, _ = scanned(bytes(batch), monkeypatch)
    assert not found


def test_a_small_batch_that_would_be_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zstd.compress(bytes(200 << 20))
    batch = build(bomb, count=1, base_timestamp=1, max_timestamp=1, codec=4)
    assert len(batch) < 20_000
    with guarded(60, 100):
        found, reason = scanned(bytes(batch), monkeypatch)
    assert not found and "offset 0" in reason


def test_whatever_bytes_a_mapping_topic_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    from airmirror.errors import AirmirrorError

    (decoder,) = (each for each in DECODERS if each.name == "batches")
    corpus, chance, read = list(decoder.examples()), random.Random(1), 0
    for _ in range(2000):
        data = mutated(corpus, chance)
        decoder.mend(data)
        try:
            scanned(bytes(data), monkeypatch)
            read += 1
        except AirmirrorError:  # bytes that are no batches: the fetch failed
            continue
    assert read > 500
