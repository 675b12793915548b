"""Files of positions: what of each format is read, what is written again, and what is refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from airmirror.offsets.files.model import BadPositions, PositionFile, PositionThere
from airmirror.offsets.files.reading import read
from airmirror.offsets.files.writing import PositionsNotWritten, write


def document(file: Path, content: object, topic: str = "") -> PositionFile:
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return read(file, "east", "west", topic)


def moved(found: PositionFile, by: int = 100) -> dict[Any, PositionThere]:
    return {each: PositionThere(f"east.{each.topic}", each.offset + by) for each in found.positions}


def rewritten(file: Path, content: object, topic: str = "") -> str:
    found = document(file, content, topic)
    (text,) = found.texts(moved(found)).values()
    return text


def asked(found: PositionFile) -> list[tuple[str, int, int]]:
    return [(each.topic, each.partition, each.offset) for each in found.positions]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "positions"


def test_flink_text(file: Path) -> None:
    text = " partition:0,offset:42 ; partition:1,offset:300;\n"
    assert asked(document(file, text, "orders")) == [("orders", 0, 42), ("orders", 1, 300)]
    assert rewritten(file, text, "orders") == "partition:0,offset:142;partition:1,offset:400\n"
    with pytest.raises(BadPositions, match="--topic"):
        document(file, text)


def test_flink_json(file: Path) -> None:
    """As in a compiled plan: two tables, and one that begins elsewhere."""
    table = {"connector": "kafka", "topic": "orders", "scan.startup.specific-offsets": "partition:0,offset:42"}
    other = {"connector": "kafka", "topic": "returns", "scan.startup.specific-offsets": "partition:0,offset:7"}
    plan = {
        "nodes": [{"scanTableSource": {"table": {"resolvedTable": {"options": table}}}}, {"options": other}, {"x": 1}]
    }
    found = document(file, plan)
    assert asked(found) == [("orders", 0, 42), ("returns", 0, 7)]
    (text,) = found.texts(moved(found)).values()
    made = json.loads(text)
    assert made["nodes"][0]["scanTableSource"]["table"]["resolvedTable"]["options"] == {
        "connector": "kafka",
        "topic": "east.orders",
        "scan.startup.specific-offsets": "partition:0,offset:142",
    }
    assert made["nodes"][1]["options"]["topic"] == "east.returns" and made["nodes"][2] == {"x": 1}
    with pytest.raises(BadPositions, match="one topic"):
        document(file, {"topic": "orders;returns", "scan.startup.specific-offsets": "partition:0,offset:42"})


def test_connect_sink(file: Path) -> None:
    content = {
        "offsets": [{"partition": {"kafka_topic": "orders", "kafka_partition": 3}, "offset": {"kafka_offset": 42}}]
    }
    assert asked(document(file, content)) == [("orders", 3, 42)]
    assert json.loads(rewritten(file, content)) == {
        "offsets": [
            {"partition": {"kafka_topic": "east.orders", "kafka_partition": 3}, "offset": {"kafka_offset": 142}}
        ]
    }


def test_connect_mirrormaker_says_the_last_offset_and_names_its_cluster(file: Path) -> None:
    def entry(cluster: str, topic: str, offset: object) -> dict[str, object]:
        return {"partition": {"cluster": cluster, "topic": topic, "partition": 0}, "offset": offset}

    content = {"offsets": [entry("east", "orders", {"offset": 41}), entry("east", "returns", None)]}
    found = document(file, content)
    assert asked(found) == [("orders", 0, 42)] and len(found.kept) == 1
    made = json.loads(found.texts(moved(found))[""])
    assert made["offsets"] == [entry("west", "east.orders", {"offset": 141}), content["offsets"][1]]
    at_zero = found.texts({found.positions[0]: PositionThere("east.orders", 0)})
    assert json.loads(at_zero[""])["offsets"][0] == entry("west", "east.orders", None)
    with pytest.raises(BadPositions, match="'north'"):
        document(file, {"offsets": [entry("north", "orders", {"offset": 41})]})


def test_connect_source_of_the_outside_stays(file: Path) -> None:
    content = {"offsets": [{"partition": {"filename": "/data"}, "offset": {"position": 30}}]}
    found = document(file, content)
    assert not found.positions and found.kept and json.loads(rewritten(file, content)) == content


def test_csv_of_the_tool_with_and_without_groups(file: Path) -> None:
    assert rewritten(file, "orders,0,42\norders,1,7\n") == "east.orders,0,142\neast.orders,1,107\n"
    text = '"billing, all",orders,0,42\n\nshipping,orders,0,7\n'
    found = document(file, text)
    assert [each.place for each in found.positions] == ["group billing, all", "group shipping"]
    rows = list(csv.reader(rewritten(file, text).splitlines()))
    assert rows == [["billing, all", "east.orders", "0", "142"], ["shipping", "east.orders", "0", "107"]]


def test_plain_json(file: Path) -> None:
    row = {"topic": "orders", "partition": 0, "offset": 42, "note": "kept"}
    assert json.loads(rewritten(file, [row])) == [row | {"topic": "east.orders", "offset": 142, "exact": True}]
    assert json.loads(rewritten(file, {"orders": {"0": 42, "1": 0}})) == {"east.orders": {"0": 142, "1": 100}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders,0",
        "orders,0,-1",
        "orders,0,x",
        "orders,0,42\norders,0,43",
        "orders,0,9223372036854775808",
        '"orders,0,42',
        "o" * 250 + ",0,42",
        "orders,0,42\na,orders,0,42",
        "partition:0,offset:-2",
        "partition:0,offset:42;partition:0,offset:43",
        "partition:0,offset:42;nonsense",
        '{"orders": {"0": 42}',
        '{"orders": {"0": 42, "0": 43}}',
        '{"orders": {"0": true}}',
        '{"orders": {"0": -1}}',
        '{"orders": {"0": 4.5}}',
        '{"orders": {"0": NaN}}',
        '{"orders": 1}',
        "[1]",
        '[{"topic": "orders", "partition": 0}]',
        '{"offsets": [{"partition": 1}]}',
        '{"offsets": [{"partition": {"cluster": "east", "topic": "t", "partition": 0}, "offset": {"offset": -1}}]}',
        "[" * 100_000,
        "{}",
    ],
)
def test_nonsense_is_refused(file: Path, text: str) -> None:
    with pytest.raises(BadPositions) as refused:
        document(file, text, "orders")
    assert len(str(refused.value)) < 1000


def test_what_is_no_text_or_can_not_be_read_is_refused(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadPositions, match="no text"):
        read(file, "east", "west")
    with pytest.raises(BadPositions, match="can't be read"):
        read(file.with_name("nothing"), "east", "west")


def checkpoint(directory: Path, batches: Mapping[int, list[str]], commits: list[int], begun: str = "") -> Path:
    """A checkpoint as Spark writes it, with checksums of Hadoop and some state."""
    (directory / "state" / "0").mkdir(parents=True)
    (directory / "state" / "0" / "1.delta").write_bytes(b"state")
    (directory / "metadata").write_text('{"id":"7b0f"}')
    for name in ("offsets", "commits", "sources/0"):
        (directory / name).mkdir(parents=True)
    for number, lines in batches.items():
        (directory / "offsets" / str(number)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *lines]))
        (directory / "offsets" / f".{number}.crc").write_bytes(b"crc")
    for number in commits:
        (directory / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        (directory / "commits" / f".{number}.crc").write_bytes(b"crc")
    (directory / "sources" / "0" / "0").write_text(f"\0v1\n{begun or '{}'}")
    (directory / "sources" / "0" / ".0.crc").write_bytes(b"crc")
    return directory


def offsets(orders: int) -> str:
    return json.dumps({"orders": {"0": orders, "1": 0}}, separators=(",", ":"))


def files(directory: Path) -> set[str]:
    return {each.relative_to(directory).as_posix() for each in directory.rglob("*") if each.is_file()}


def test_a_checkpoint_keeps_what_spark_reads_of_it(tmp_path: Path) -> None:
    other = '{"logOffset":3}'
    made = {number: [offsets(number * 10), other if number else "-"] for number in range(6)}
    found = read(checkpoint(tmp_path / "here", made, [2, 3, 4], offsets(3)), "east", "west")
    assert {each.place for each in found.positions} == {"batch 4, source 0", "batch 5, source 0"}
    assert found.kept == ("source 1, which is not Kafka",)
    write(found, moved(found), tmp_path / "there")
    there = tmp_path / "there"
    assert files(there) == {
        "metadata", "state/0/1.delta", "offsets/4", "offsets/5", "commits/4", "commits/.4.crc", "sources/0/0",
    }  # fmt: skip
    expected = '{"east.orders":{"0":150,"1":100}}'
    assert (there / "offsets" / "5").read_text() == f'v1\n{{"batchWatermarkMs":0}}\n{expected}\n{other}'
    assert (there / "sources/0/0").read_text() == "\0v1\n" + expected.replace("150", "140")
    assert (there / "state/0/1.delta").read_bytes() == b"state"
    assert files(tmp_path / "here") > files(there), "the original stays"


def test_of_a_checkpoint_with_batch_0_the_beginning_counts(tmp_path: Path) -> None:
    found = read(checkpoint(tmp_path / "here", {0: [offsets(9)]}, [], offsets(3)), "east", "west")
    assert {(each.place, each.partition, each.offset) for each in found.positions} >= {
        ("beginning of source 0", 0, 3),
        ("batch 0, source 0", 0, 9),
    }
    write(found, moved(found), tmp_path / "there")
    assert (tmp_path / "there/sources/0/0").read_text() == '\0v1\n{"east.orders":{"0":103,"1":100}}'


@pytest.mark.parametrize("wrong", ["version", "gap", "commit", "empty", "link", "kafka", "beginning"])
def test_a_checkpoint_that_is_none_is_refused(tmp_path: Path, wrong: str) -> None:
    batches = {4: [offsets(40)], (6 if wrong == "gap" else 5): [offsets(50) if wrong != "kafka" else "7"]}
    if wrong == "kafka":
        batches[4] = ["6"]
    if wrong == "beginning":
        batches = {0: [offsets(1)]}
    here = checkpoint(tmp_path / "here", batches, [1] if wrong == "commit" else [], "nonsense")
    if wrong == "version":
        (here / "offsets/5").write_text("v2\n{}\n" + offsets(1))
    if wrong == "empty":
        (here / "metadata").unlink()
    if wrong == "link":
        (here / "state" / "link").symlink_to("/etc")
    with pytest.raises(BadPositions):
        read(here, "east", "west")


def test_two_topics_that_become_one_are_refused(tmp_path: Path) -> None:
    found = document(tmp_path / "p", {"orders": {"0": 1}, "returns": {"0": 2}})
    with pytest.raises(BadPositions, match="twice"):
        write(found, {each: PositionThere("all", each.offset) for each in found.positions}, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_nothing_is_written_over_what_is_there(tmp_path: Path) -> None:
    found = document(tmp_path / "p", "orders,0,42\n")
    (tmp_path / "to").write_text("mine")
    with pytest.raises(PositionsNotWritten, match="there already"):
        write(found, moved(found), tmp_path / "to")
    with pytest.raises(PositionsNotWritten, match="no such directory"):
        write(found, moved(found), tmp_path / "no" / "to")
    assert (tmp_path / "to").read_text() == "mine" and {each.name for each in tmp_path.iterdir()} == {"p", "to"}
