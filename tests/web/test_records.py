"""A record beside its copy: what is shown, what is masked, to whom, and what is said where one of them is not there."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from airmirror.evidence.single import Single
from airmirror.flows.measure import measure_window
from airmirror.web import app
from airmirror.web.console.records import MOST_AT_ONCE, MOST_SHOWN, _shown, turn
from airmirror.wire.headers import headers_of, parts_of
from airmirror.wire.primitives import MalformedRecord
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from support.browser import Seen
from support.console import HOSTILE, Viewer, served
from support.flows import Mirror, mirror
from support.topics import Record, await_settled, create_topic, delete_topic, produce
from support.waiting import BUSY

CARD = {"order": 7, "Card": "4111", "inner": [{"card": {"number": 1}}], "text": '{"card": "4222", "kept": 1}'}
TIME = 1_700_000_000_000
RECORDS = [
    Record(
        json.dumps(CARD).encode(), key=b'{"id": 7}', headers=(("origin", b"shop"), ("card", b"4333")), timestamp=TIME
    ),
    Record(b"\xff\x00\x01", key=None, timestamp=TIME + 1_000),
    Record(None, key=b"gone", headers=(("empty", None),), timestamp=TIME + 2_000),
    Record(HOSTILE.encode(), key=HOSTILE.encode(), headers=((HOSTILE, b"1"),), timestamp=TIME + 3_000),
    Record(b"x" * (MOST_SHOWN + 1), timestamp=TIME + 4_000),
]


@pytest.fixture
def copied(east: Broker, west: Broker, tmp_path: Path, viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """A flow that has copied RECORDS, which the console knows."""
    flow = mirror(east, west, tmp_path, ledger_url=f"sqlite:///{tmp_path / 'ledger.db'}")
    produce(east, flow.topic, RECORDS, partition=0)
    measure_window(flow.opened, flow.run(), lambda key: True)
    configure(flow, tmp_path, **{"console.records.enabled": "true"})
    viewer.dags = {dag(flow)}
    return flow


def configure(flow: Mirror, directory: Path, source: str = "", **keys: str) -> None:
    own = flow.flow
    lines = [
        f"clusters = {own.source.alias}, west",
        f"{own.source.alias}.bootstrap.servers = {source or flow.source.bootstrap}",  # type: ignore[union-attr]
        f"west.bootstrap.servers = {flow.target.bootstrap}",  # type: ignore[union-attr]
        f"{own.name}.enabled = true",
        f"{own.name}.topics = {flow.topic}",
        *(f"{own.name}.{key} = {value}" for key, value in keys.items()),
    ]
    (directory / "mirror.properties").write_text("\n".join(lines) + "\n")


def dag(flow: Mirror) -> str:
    return f"replicate.{flow.flow.source.alias}.west"


def look(client: TestClient, flow: Mirror, at: str, topic: str = "", status: int = 200) -> Any:
    answer = client.get(f"/console/api/flows/{dag(flow)}/record?topic={topic or flow.topic}&partition=0&{at}")
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_record_and_its_copy_are_equal_byte_by_byte(client: TestClient, copied: Mirror) -> None:
    for offset, record in enumerate(RECORDS):
        found = look(client, copied, f"offset={offset}")
        assert found["differences"] == [] and found["target_offset"] == offset, found
        for side in (found["source"], found["target"]):
            assert side["timestamp"] == record.timestamp and side["headers_in_all"] == len(record.headers)
            for name, value in (("key", record.key), ("value", record.value)):
                assert side[name]["bytes"] == (None if value is None else len(value))
                if value is not None:
                    assert bytes.fromhex(side[name]["hex"]) == value[:MOST_SHOWN]
                    assert side[name]["cut"] == (len(value) > MOST_SHOWN)
    found = look(client, copied, "offset=0")
    assert json.loads(found["target"]["value"]["json"]) == CARD
    assert [(each["name"], each["text"]) for each in found["target"]["headers"]] == [
        ("origin", "shop"),
        ("card", "4333"),
    ]
    assert "text" not in look(client, copied, "offset=1")["source"]["value"]


def test_a_cluster_without_its_connection_is_told_as_that(client: TestClient, copied: Mirror, tmp_path: Path) -> None:
    with (tmp_path / "mirror.properties").open("a") as lines:
        lines.write(f"{copied.flow.source.alias}.airflow.conn.id = nowhere\n")
    assert look(client, copied, "offset=0", status=503)["detail"].startswith("a cluster's connection can't be used")


def test_a_time_finds_the_first_record_that_is_not_earlier(client: TestClient, copied: Mirror) -> None:
    assert look(client, copied, f"time_ms={TIME + 1_500}")["offset"] == 2
    late = look(client, copied, f"time_ms={TIME + 9_000}")
    assert late["offset"] is None and late["source"]["missing"] == "no record is as late as that"


def test_what_is_masked_is_in_no_form_of_the_answer(client: TestClient, copied: Mirror, tmp_path: Path) -> None:
    configure(copied, tmp_path, **{"console.records.enabled": "true", "console.records.mask": "CARD"})
    answers = [look(client, copied, f"offset={offset}") for offset in range(len(RECORDS))]
    said = json.dumps(answers)
    for secret in ("4111", "4222", "4333", b"4111".hex(" "), "number"):
        assert secret not in said, secret
    shown = json.loads(answers[0]["source"]["value"]["json"])
    assert (shown["order"], shown["Card"], shown["inner"]) == (7, "masked", [{"card": "masked"}])
    assert json.loads(shown["text"]) == {"card": "masked", "kept": 1}
    assert answers[0]["source"]["headers"][1] == {"name": "card", "bytes": 4, "hidden": "masked"}
    # What is no JSON may have it anywhere.
    assert set(answers[1]["target"]["value"]) == {"bytes", "hidden"} and set(answers[3]["source"]["key"]) == {
        "bytes",
        "hidden",
    }


PAID = {"card": "4111", "kept": 1}
JSON = json.dumps(PAID)
HIDING = {
    "a field": PAID,
    "deep": {"a": [{"Card": "4111", "card ": "4111"}]},
    "JSON in a text": {"payload": JSON},
    "encoded twice": {"payload": json.dumps(JSON)},
    "three times": {"payload": json.dumps(json.dumps([JSON]))},
    "lines of JSON": {"payload": f"{JSON}\n{JSON}"},
    "after a mark of the byte order": {"payload": "\ufeff" + JSON},
    "cut short": {"payload": JSON[:16]},
    "cut short, its name escaped": {"payload": JSON[:16].replace("card", "c\\u0061rd")},
    "a form": {"payload": "order=7&CARD=4111"},
}


@pytest.mark.parametrize("what", HIDING)
def test_what_is_masked_leaves_in_no_header_and_no_text(what: str) -> None:
    value = json.dumps(HIDING[what] | {"plain": "a discard, 17"}).encode()
    headers = ((b"original", value), (b"trace", b"card=4111"), (b"twice", json.dumps(JSON).encode()))
    shown = _shown(Single(1, 1, value, value, headers, False), frozenset({"card"}))
    said = json.dumps(shown)
    assert "4111" not in said and b"4111".hex(" ") not in said
    assert json.loads(shown["value"]["json"])["plain"] == "a discard, 17"
    assert shown["headers"][0]["json"] == shown["value"]["json"] and "hidden" in shown["headers"][1]


def test_a_copy_that_differs_says_in_what(client: TestClient, copied: Mirror, west: Broker) -> None:
    delete_topic(west, copied.remote_topic)
    create_topic(west, copied.remote_topic)
    other = Record(b"{}", key=b'{"id": 7}', headers=RECORDS[0].headers, timestamp=TIME + 5)
    produce(west, copied.remote_topic, [other], partition=0)
    found = look(client, copied, "offset=0")
    assert found["differences"] == ["value", "timestamp"] and found["target"]["value"]["text"] == "{}"
    gone = look(client, copied, "offset=1")
    assert gone["differences"] is None and gone["target"]["missing"].startswith("not there yet")


def test_what_is_not_copied_says_why(client: TestClient, copied: Mirror, east: Broker) -> None:
    producer = Producer({"bootstrap.servers": east.bootstrap, "transactional.id": copied.topic})
    producer.init_transactions(30)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(copied.topic, b"in a transaction", partition=0)
        producer.flush(30)  # an abort drops what was not sent
        end(30)
    await_settled(east, copied.topic)
    measure_window(copied.opened, copied.run(), lambda key: True)
    first = len(RECORDS)
    aborted, marker, kept = (look(client, copied, f"offset={first + n}") for n in range(3))
    assert aborted["source"]["aborted"] and "1 aborted" in aborted["target"]["missing"]
    assert "control record" in marker["source"]["missing"] and "control" in marker["target"]["missing"]
    assert kept["differences"] == [] and kept["target_offset"] == first + 1  # after the marker of the first window
    ahead = look(client, copied, f"offset={first + 100}")
    assert ahead["source"]["missing"].startswith("not there yet") and "no window" in ahead["target"]["missing"]


def test_a_cluster_that_does_not_answer_leaves_the_other(client: TestClient, copied: Mirror, tmp_path: Path) -> None:
    configure(copied, tmp_path, source=f"{LOOPBACK}:{free_port()}", **{"console.records.enabled": "true"})
    begun = time.monotonic()
    found = look(client, copied, "offset=0")
    assert "missing" in found["source"] and found["target"]["value"]["bytes"] and found["differences"] is None
    assert time.monotonic() - begun < BUSY * 20


def test_who_may_not_see_connections_sees_no_record(
    client: TestClient, copied: Mirror, viewer: Viewer, tmp_path: Path
) -> None:
    look(client, copied, "offset=0", topic="another", status=404)
    viewer.sees_connections = False
    look(client, copied, "offset=0", status=403)
    viewer.sees_connections = True
    with ExitStack() as all_turns:
        for _ in range(MOST_AT_ONCE):
            all_turns.enter_context(turn())
        look(client, copied, "offset=0", status=429)
    look(client, copied, "offset=0")
    configure(copied, tmp_path)
    assert "console.records.enabled" in look(client, copied, "offset=0", status=404)["detail"]
    partition = client.get(f"/console/api/flows/{dag(copied)}/partition?topic={copied.topic}&partition=0").json()
    assert partition["records"] is False


@pytest.fixture
def url(viewer: Viewer) -> Iterator[str]:
    with served(app.build_app()) as found:
        yield found


@pytest.mark.seconds
def test_the_page_shows_both_as_text(seen: Seen, url: str, copied: Mirror) -> None:
    page = seen.page
    page.goto(f"{url}/airmirror/console/frame/partition/{dag(copied)}?topic={copied.topic}&partition=0")
    page.get_by_role("link", name="Compare a record with its copy").click()
    expect(page.get_by_text("Both are equal")).to_be_visible()
    expect(page.locator("tr", has_text="value").locator("pre").first).to_contain_text('"order": 7')
    page.get_by_role("button", name="as hex").click()
    expect(page.locator("tr", has_text="value").locator("pre").first).to_contain_text("7b 22 6f")
    page.get_by_label("offset on the source").fill("2")
    page.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile("offset=2"))
    expect(page.locator("tr", has_text="value")).to_contain_text("null")
    page.get_by_role("button", name="one later").click()
    page.get_by_role("button", name="as text").click()
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    assert page.locator("img").count() == 0 and page.title() == "Airmirror"
    assert seen.errors == [] and seen.foreign(url) == []


def test_headers_are_read_to_their_last_byte() -> None:
    body = b"\x02k\x02v\x04" + b"\x02a\x04xy" + b"\x02b\x01"
    key, value, tail = parts_of(body)
    assert (key, value, headers_of(tail)) == (b"k", b"v", [(b"a", b"xy"), (b"b", None)])
    for broken in (tail[:-1], tail + b"\0", b"\x7f", b"\x01"):
        with pytest.raises(MalformedRecord):
            headers_of(broken)
