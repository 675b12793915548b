"""Mirrors on real brokers: a copier that loses, repeats, reorders and alters is found out, and nobody is accused falsely."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from socket import socket
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner, Result

from airmirror.cli.main import app
from airmirror.config import Cluster
from airmirror.evidence import mirrors
from airmirror.evidence.asking import ComparisonRequest
from airmirror.evidence.borders import SampleSize
from airmirror.evidence.compared_report import compared_report
from airmirror.evidence.found import Kind
from airmirror.evidence.mirrors import compare_clusters
from airmirror.evidence.positions import moves
from airmirror.evidence.rows import ComparedLogs
from airmirror.partitions import TopicPartition
from airmirror.report.check import check
from airmirror.wire.checkpoints import Checkpoint
from airmirror_local.brokers import Broker
from support.groups import commit
from support.hostile import KINDS, LONGEST, NOON, delete_records, numbered
from support.hostile import Kind as LogKind
from support.topics import Record, await_settled, create_topic, open_transaction, produce, read_all

TOO_FEW = ("only aborted transactions", "every record deleted", "empty partitions")  # records to plant faults in
Copier = Callable[[list[Record]], list[Record]]


def ends(east: Broker, west: Broker) -> tuple[Cluster, Cluster]:
    return Cluster("source", (east.bootstrap,), {}), Cluster("target", (west.bootstrap,), {})


def copied(
    east: Broker, west: Broker, topic: str, copier: Copier = list, partitions: int = 1, prefix: str = "copy"
) -> str:
    """A copy of a topic on the target as some tool makes it: by a plain producer, partition by partition."""
    config = {"message.timestamp.before.max.ms": LONGEST, "message.timestamp.after.max.ms": LONGEST}
    remote = create_topic(west, f"{prefix}.{topic}", partitions, config | {"max.message.bytes": "100000000"})
    for partition, records in read_all(east, topic).items():
        produce(west, remote, copier(records), partition=partition, settings={"message.max.bytes": "100000000"})
    return remote


def compared(east: Broker, west: Broker, topic: str, prefix: str = "copy", **asked: Any) -> list[ComparedLogs]:
    return compare_clusters(*ends(east, west), ComparisonRequest((topic,), rename=f"{prefix}.{{topic}}", **asked))


def filled(east: Broker, topic: str, records: list[Record], partitions: int = 1) -> str:
    create_topic(east, topic, partitions)
    for partition in range(partitions):
        produce(east, topic, records, partition=partition)
    return topic


def command(east: Broker, west: Broker, topic: str, *more: str) -> Result:
    where = ["--source", east.bootstrap, "--target", west.bootstrap, "--topics", topic, "--rename", "copy.{topic}"]
    return CliRunner().invoke(app, ["compare", *where, *more])


def test_an_equal_copy_is_equal_and_the_command_says_so(
    east: Broker, west: Broker, topic: Callable[[str], str]
) -> None:
    name = filled(east, topic("equal"), numbered(3000), partitions=2)
    copied(east, west, name, partitions=2)
    answer = command(east, west, name)
    assert answer.exit_code == 0, answer.output
    assert "2 of 2 partitions are equal: 6,000 records." in answer.output


def test_a_comparison_is_written_as_a_signed_report(
    east: Broker, west: Broker, topic: Callable[[str], str], tmp_path: Path
) -> None:
    name = filled(east, topic("reported"), numbered(50))
    copied(east, west, name, lambda records: records[:20] + records[21:])
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key.pem").write_bytes(key)
    answer = command(east, west, name, "--report", str(tmp_path / "compared"), "--key", str(tmp_path / "key.pem"))
    assert answer.exit_code == 1, answer.output
    content = json.loads((tmp_path / "compared.json").read_bytes())
    numbers = {each["name"]: each["value"] for each in content["numbers"]}
    assert (numbers["records equal"], numbers["records missing"], numbers["logs equal"]) == (49, 1, 0)
    (difference,) = content["sections"]["differences"]
    assert (difference["kind"], difference["source_first"], difference["source_last"]) == ("missing", 20, 20)
    assert "1 of 1 logs differ" in content["headline"] and not content["is_good"]
    assert check(tmp_path / "compared.json").wrong == ()


def faulty(records: list[Record]) -> list[Record]:
    """Offset 700 lost, 1,000 to 1,199 twice, 1,500 and 1,501 swapped, a value altered at 1,800, a stranger before 2,000."""
    made = [*records[:700], *records[701:1200], *records[1000:1500], records[1501], records[1500], *records[1502:1800]]
    made += [replace(records[1800], value=b"altered"), *records[1801:2000], Record(b"stranger", b"k", timestamp=NOON)]
    return made + records[2000:]


def test_every_planted_fault_is_found_and_nothing_else(east: Broker, west: Broker, topic: Callable[[str], str]) -> None:
    name = filled(east, topic("faulty"), numbered(3000))
    copied(east, west, name, faulty)
    answer = command(east, west, name, "--json")
    assert answer.exit_code == 1, answer.output
    told = json.loads(answer.output)
    (row,) = told["partitions"]
    assert {kind: count for kind, count in row["records"].items() if count} == {
        "equal": 2997,
        "missing": 1,
        "twice": 200,
        "reordered": 1,
        "altered": 1,
        "extra": 1,
    }
    found = {each["kind"]: each for each in row["differences"]}
    assert found["missing"]["source_first"] == found["missing"]["source_last"] == 700
    assert (found["twice"]["source_first"], found["twice"]["source_last"]) == (1000, 1199)
    assert found["twice"]["target_first"] == 1199
    assert found["altered"]["source_first"] == 1800 and found["altered"]["differ"] == ["value"]
    assert found["extra"]["target_first"] == 2199 and found["extra"]["source_first"] is None
    assert found["reordered"]["source_first"] in (1500, 1501)
    shown = command(east, west, name)
    assert "missing: source 700" in shown.output and "0 of 1 partitions are equal" in shown.output


def test_a_sample_says_that_it_is_one_and_what_it_has_read(
    east: Broker, west: Broker, topic: Callable[[str], str], tmp_path: Path
) -> None:
    name = filled(east, topic("sampled"), [replace(r, timestamp=NOON + i) for i, r in enumerate(numbered(5000))])
    copied(east, west, name, lambda records: [*records[:700], *records[701:]])  # no offset is kept from there on
    log = SimpleNamespace(start=0, end=5000, partition=TopicPartition(name, 0))
    chosen = {seed: SampleSize(share=40_000, seed=seed).chosen(log) for seed in range(100)}  # type: ignore[arg-type]
    with_it, without_it = (
        next(str(seed) for seed, ranges in chosen.items() if (ranges[0][0] == 0) is wanted) for wanted in (True, False)
    )
    for seed in (with_it, without_it):
        base = tmp_path / f"report-{seed}"
        answer = command(east, west, name, "--sample", "40%", "--seed", seed, "--json", "--report", str(base))
        told, written = json.loads(answer.output), json.loads(base.with_suffix(".json").read_bytes())
        (row,) = told["partitions"]
        has_lost = any(first <= 700 < end for first, end, _, _ in row["ranges"])
        assert has_lost is (seed == with_it)
        assert answer.exit_code == has_lost and told["is_equal"] is row["is_equal"] is (False if has_lost else None)
        assert told["sample"] == {"of": "40% of each partition", "seed": int(seed)}
        read = sum(end - first for first, end, _, _ in row["ranges"])
        assert row["offsets_compared"] == read == row["records"]["equal"] + has_lost < row["offsets"] == 5000
        assert all(its_first == first - (first > 700) for first, _, its_first, _ in row["ranges"])
        assert written["asked"]["sample"] == "40% of each partition" and written["asked"]["seed_of_the_sample"] == int(
            seed
        )
        assert written["headline"].startswith(f"In a sample of {read:,} of 5,000 source offsets")
        assert "what was not read is not known" in written["headline"] and "not read" in written["not_known"][0]
        assert [each["source"] for each in written["sections"]["ranges"]] == [[each[:2]] for each in row["ranges"]]
        shown = command(east, west, name, "--sample", "40%", "--seed", seed)
        assert "In a sample of" in shown.output and "partitions are equal" not in shown.output
    everything = json.loads(command(east, west, name, "--sample", "100%", "--json").output)
    assert everything["is_equal"] is False and everything["partitions"][0]["records"]["missing"] == 1
    refused = command(east, west, name, "--sample", "3", "--groups", ".*")
    assert refused.exit_code == 2 and "--groups needs all records" in refused.output


# The first one, of every codec, takes ten times as long as the others; windows/test_any_log.py has it.
@pytest.mark.parametrize("kind", [pytest.param(KINDS[0], marks=pytest.mark.long), *KINDS[1:]], ids=str)
def test_copies_of_hostile_logs_are_equal(east: Broker, west: Broker, kind: LogKind) -> None:
    """Nothing is reported where consumers read the same on both sides. (No producer of librdkafka writes the time 0.)"""
    name = create_topic(east, f"hostile-{uuid.uuid4().hex[:8]}", kind.partitions, kind.config)
    kind.fill(east, name)
    remote = copied(east, west, name, partitions=kind.partitions)
    ours, theirs = read_all(east, name), read_all(west, remote)
    for row in compared(east, west, name):
        pairs = list(zip(ours[row.partition], theirs[row.partition], strict=True))
        altered = [one.offset for one, other in pairs if one.content != other.content]
        wanted = {Kind.EQUAL: len(pairs) - len(altered), Kind.ALTERED: len(altered)}
        assert row.counts == {which: count for which, count in wanted.items() if count}, (row.differences, row.error)
        told = [at for each in row.differences for at in range(each.source_offset, each.source_offset + each.count)]
        assert told == altered and all(each.parts == ("timestamp",) for each in row.differences)
    if str(kind) not in TOO_FEW:
        assert_planted_faults_are_found(east, west, name, kind.partitions)


def assert_planted_faults_are_found(east: Broker, west: Broker, name: str, partitions: int) -> None:
    """Every fault of a copier is found at its offset, and beyond what its producer can't write nothing else is."""
    ours = read_all(east, name)
    faults = {number: planted(records) for number, records in ours.items()}
    copies = iter(made for _, made in faults.values())
    copied(east, west, name, lambda _: next(copies), partitions=partitions, prefix="faulty")
    plain = {row.partition: row.counts.get(Kind.ALTERED, 0) for row in compared(east, west, name)}
    for row in compared(east, west, name, prefix="faulty"):
        at, _ = faults[row.partition]
        altered = plain[row.partition] + (Kind.ALTERED in at)
        wanted = {Kind.EXTRA: 1} | dict.fromkeys(at, 1) | ({Kind.ALTERED: altered} if altered else {})
        assert {kind: count for kind, count in row.counts.items() if kind is not Kind.EQUAL and count} == wanted
        found = {each.kind: each for each in row.differences if "timestamp" not in each.parts}
        for kind, offset in at.items():
            assert found[kind].source_offset in ((offset, offset + 1) if kind is Kind.REORDERED else (offset,))
            assert kind is not Kind.ALTERED or found[kind].parts == ("value",)


def planted(records: list[Record]) -> tuple[dict[Kind, int], list[Record]]:
    """The copy of a copier, and the offsets of what it alters, loses, copies again and brings late, as far as there is room.

    Each is a record like no other one, between two that are copied as they are. At the end comes a stranger.
    """
    contents = Counter(record.content for record in records)
    single = {n for n, r in enumerate(records) if contents[r.content] == 1 and r.timestamp > 0}
    timely = [number for number, record in enumerate(records) if record.timestamp > 0]
    free = [n for n in sorted(single)[1:] if {n - 1, n, n + 1, n + 2} <= set(timely)]
    at = dict[Kind, int]()
    for kind in (Kind.ALTERED, Kind.MISSING, Kind.TWICE, Kind.REORDERED):
        chosen = next((n for n in free if kind is not Kind.REORDERED or n + 1 in single), None)
        if chosen is not None:
            at[kind], free = chosen, [n for n in free if n > chosen + 3]
    made = list[Record]()
    for number, record in enumerate(records):
        is_late = number - 1 == at.get(Kind.REORDERED)
        if number != at.get(Kind.MISSING):
            changed = replace(record, value=b"altered") if number == at.get(Kind.ALTERED) else record
            made.insert(len(made) - is_late, changed)
        made += [record] if number == at.get(Kind.TWICE) else []
    stranger = Record(b"stranger", b"of no key", timestamp=NOON)
    return {what: records[number].offset for what, number in at.items()}, [*made, stranger]


def test_a_record_in_another_partition(east: Broker, west: Broker, topic: Callable[[str], str]) -> None:
    name = filled(east, topic("moved"), numbered(500), partitions=1)
    remote = create_topic(west, f"copy.{name}", 2)
    records = read_all(east, name)[0]
    produce(west, remote, records[:200] + records[201:], partition=0)
    produce(west, remote, records[200:201], partition=1)
    (row,) = compared(east, west, name)  # one partition there, two here: by key
    assert row.is_equal and row.partition == -1 and row.counts == {Kind.EQUAL: 500}
    commit(east, f"group-{name}", {(name, 0): 400})
    (move,) = moves(*ends(east, west), [row], [f"group-{name}"])
    assert (move.by, move.as_dict()["skipped"]) == ("compared by key", None)
    other = filled(east, topic("moved"), [], partitions=2)
    produce(east, other, records, partition=0)
    remote = create_topic(west, f"copy.{other}", 2)
    produce(west, remote, records[:200] + records[201:], partition=0)
    produce(west, remote, records[200:201], partition=1)
    first, second = compared(east, west, other)
    assert first.counts == {Kind.EQUAL: 499, Kind.ALTERED: 1} and second.counts == {}
    (difference,) = first.differences
    assert (difference.source_offset, difference.parts, difference.target_partition) == (200, ("partition",), 1)


def test_deleted_records_are_no_loss_and_times_can_be_chosen(
    east: Broker, west: Broker, topic: Callable[[str], str]
) -> None:
    name = filled(east, topic("expired"), [replace(r, timestamp=NOON + i) for i, r in enumerate(numbered(900))])
    remote = copied(east, west, name)
    delete_records(west, remote, 300)
    (row,) = compared(east, west, name)
    assert row.is_equal and row.counts == {Kind.EQUAL: 600, Kind.EXPIRED: 300}
    (row,) = compared(east, west, name, first_ms=NOON + 400, end_ms=NOON + 500)
    assert row.is_equal and row.counts == {Kind.EQUAL: 100}
    (row,) = compared(east, west, name, first_ms=NOON + 200, end_ms=NOON + 500)
    assert not row.is_equal and row.counts == {Kind.EQUAL: 200, Kind.MISSING: 100}


def test_a_group_that_moves_would_skip_and_read_again(east: Broker, west: Broker, topic: Callable[[str], str]) -> None:
    name = filled(east, topic("groups"), numbered(1000))
    remote = copied(east, west, name)
    late, early = f"late-{name}", f"early-{name}"
    for group, position in ((late, 450), (early, 330)):
        commit(east, group, {(name, 0): 400})
        commit(west, group, {(remote, 0): position})
    rows = compared(east, west, name)
    found = {move.group: move for move in moves(*ends(east, west), rows, [f".*-{name}"])}
    assert (found[late].skipped, found[late].again) == (50, 0)
    assert (found[early].skipped, found[early].again) == (0, 70)


def test_a_group_stands_on_the_target_where_mirrormaker_s_checkpoint_says(
    east: Broker, west: Broker, topic: Callable[[str], str]
) -> None:
    name = filled(east, topic("checkpointed"), numbered(100))
    remote, group, alias = copied(east, west, name), f"group-{name}", f"m{uuid.uuid4().hex[:8]}"
    commit(east, group, {(name, 0): 60})
    told = Checkpoint(group, remote, 0, upstream=55, downstream=55)
    create_topic(west, f"{alias}.checkpoints.internal")
    produce(west, f"{alias}.checkpoints.internal", [Record(told.encode_value(), told.encode_key())], partition=0)
    for more, by in ((("--source-alias", alias), "checkpoint"), ((), "none")):
        answer = command(east, west, name, "--groups", group, "--json", *more)
        (move,) = json.loads(answer.output)["groups"]
        position, again = (55, 5) if by == "checkpoint" else (None, 0)
        assert (move["position_by"], move["target_position"], move["again"]) == (by, position, again)
    answer = command(east, west, name, "--groups", group, "--source-alias", "nosuch")
    assert answer.exit_code == 2 and "no topic 'nosuch.checkpoints.internal'" in " ".join(answer.output.split())


def test_records_without_a_commit_are_compared_where_that_is_asked(
    east: Broker, west: Broker, topic: Callable[[str], str]
) -> None:
    name = filled(east, topic("uncommitted"), numbered(50))
    copied(east, west, name)
    produce(east, name, numbered(7, start=50), partition=0, transactional="abort")
    assert command(east, west, name).exit_code == 0
    answer = command(east, west, name, "--uncommitted", "--json")
    assert answer.exit_code == 1, answer.output


def test_what_an_open_transaction_keeps_back_is_not_known(
    east: Broker, west: Broker, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the day of a cutover a comparison runs at such a moment: the rest of the log is neither equal nor different."""
    monkeypatch.setattr(mirrors, "OPEN_SECONDS", 0.0)
    name = filled(east, topic("open"), numbered(10))
    copy = copied(east, west, name)
    with open_transaction(east, name, numbered(1), partition=0):
        produce(east, name, numbered(90), partition=0)
        answer = command(east, west, name)
        assert answer.exit_code == 1 and "0 of 1 partitions are equal: 10 records." in answer.output, answer.output
        assert "an open transaction keeps back 91 offsets of partition 0 from 10 on" in " ".join(answer.output.split())
        said = json.loads(command(east, west, name, "--json").output)
        assert said["is_equal"] is said["partitions"][0]["is_equal"] is None
        rows = compared(east, west, name)
        made = compared_report(*ends(east, west), ComparisonRequest((name,)), rows, [])
        assert not made.is_good and "91 offsets that open transactions keep back are not known" in made.headline
        assert [row.result for row in rows] == ["not known"] and not rows[0].differs
        produce(west, copy, numbered(40, start=50), partition=0)  # as who copies what is not committed
        (row,) = compared(east, west, name)
        assert row.counts == {Kind.EQUAL: 10, Kind.WITHHELD: 40} and row.result == "not known"
    await_settled(east, name)
    assert compared(east, west, name)[0].differs


def test_what_is_copied_while_ends_are_read_is_not_extra(
    east: Broker, west: Broker, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = filled(east, topic("copied"), numbered(10))
    remote, read = copied(east, west, name), mirrors._bounds

    def bounds(routes: Any, *more: Any) -> Any:
        found = read(routes, *more)
        for cluster, its in ((east, name), (west, remote)):
            produce(cluster, its, numbered(5, start=10), partition=0)
        return found

    monkeypatch.setattr(mirrors, "_bounds", bounds)
    (row,) = compared(east, west, name)
    assert row.counts == {Kind.EQUAL: 10, Kind.LAGGING: 5}


def test_bad_input_ends_with_two(east: Broker, west: Broker, topic: Callable[[str], str], tmp_path: Path) -> None:
    name = filled(east, topic("bad"), numbered(3))
    assert (
        "no topic matches"
        in CliRunner()
        .invoke(app, ["compare", "--source", east.bootstrap, "--target", west.bootstrap, "--topics", "nosuch"])
        .output
    )
    for more, said in (
        (("--rename", "west"), "has no {topic}"),
        (("--from", "yesterday"), "is no time"),
        (("--from", "2026-11-02", "--to", "2026-11-01"), "no moment lies between"),
        (("--sample", "0"), "write a share of each partition"),
        (("--topics", "["), "["),
        (("--source-config", str(tmp_path / "none")), "can't be read"),
    ):
        answer = command(east, west, name, *more)
        assert answer.exit_code == 2 and said in answer.output, (more, answer.output)
    answer = command(east, west, name)  # the target has no such topic
    assert answer.exit_code == 1 and f"has no topic 'copy.{name}'" in answer.output


def test_empty_topics_are_equal_and_an_empty_copy_is_not(
    east: Broker, west: Broker, topic: Callable[[str], str]
) -> None:
    name = filled(east, topic("empty"), [], partitions=2)
    copied(east, west, name, partitions=2)
    answer = command(east, west, name)
    assert answer.exit_code == 0 and "2 of 2 partitions are equal: 0 records." in answer.output
    produce(east, name, numbered(3), partition=1)
    first, second = compared(east, west, name)
    assert first.is_equal and not second.is_equal and second.counts == {Kind.LAGGING: 3}


@pytest.mark.long
def test_a_cluster_that_does_not_answer_is_named_and_no_difference(east: Broker, topic: Callable[[str], str]) -> None:
    name = filled(east, topic("alone"), [])
    with socket() as nobody:  # bound, and never listening
        nobody.bind(("127.0.0.1", 0))
        silent = f"127.0.0.1:{nobody.getsockname()[1]}"
        where = ["--source", east.bootstrap, "--target", silent, "--topics", name]
        answer = CliRunner().invoke(app, ["compare", *where])
        other = CliRunner().invoke(app, ["compare", "--source", silent, "--target", east.bootstrap])
    assert (answer.exit_code, other.exit_code) == (75, 75), "it may answer later"
    for side, said in (("target", answer.output), ("source", other.output)):
        assert f"cluster {side!r}" in said and silent in said and "can't be reached" in said
