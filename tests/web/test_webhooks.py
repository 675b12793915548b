"""The run that an alert stands for: the same while it fires, another one when it fires anew."""

from __future__ import annotations

import re

import pytest

from airmirror.web.alerts import Alert


def alert(**fields: object) -> Alert:
    given = {"status": "firing", "labels": {"source": "east", "target": "west"}, "startsAt": "2021-10-12T09:51:03Z"}
    return Alert.model_validate(given | fields)


def test_run_ids() -> None:
    first = alert(fingerprint="c6eadffa33fcdf37")
    assert first.run_id == "alert__c6eadffa33fcdf37__2021-10-12T09:51:03+00:00"
    again = alert(
        fingerprint="c6eadffa33fcdf37", startsAt="2021-10-12T11:51:03+02:00", annotations={"summary": "5 min"}
    )
    assert again.run_id == first.run_id
    assert alert(fingerprint="c6eadffa33fcdf37", startsAt="2021-10-12T09:52:03Z").run_id != first.run_id
    # Without a fingerprint, or with one that can't stand in a run's id, the labels tell alerts apart.
    assert alert().run_id == alert(fingerprint="../x").run_id != first.run_id
    assert alert().run_id != alert(labels={"source": "east", "target": "north"}).run_id


def test_what_it_narrows_down() -> None:
    assert alert().flow == "east->west" and alert().choice() == {}
    narrow = alert(labels={"flow": "a->b", "topic": "orders", "partition": "3"})
    assert narrow.flow == "a->b" and narrow.choice() == {"topics": ["orders"], "partitions": [3]}
    with pytest.raises(ValueError, match="partition='-1'"):
        alert(labels={"partition": "-1"}).choice()


def test_a_note_is_short_enough_for_airflow() -> None:
    note = alert(annotations={"summary": "s" * 5000}, generatorURL="http://p").note("grafana")
    assert note.startswith("Started by an alert of grafana: source=east, target=west\nsss") and len(note) == 1000


def test_a_note_shows_what_strangers_have_named_and_obeys_none_of_it() -> None:
    hostile = "![x](http://evil/p.png)\n# <b>see</b> https://evil"
    said = {
        "labels": {"source": "east", "group": hostile},
        "annotations": {"summary": hostile},
        "generatorURL": hostile,
    }
    note = alert(**said).note("grafana")
    assert len(note.splitlines()) == 3 and "![x](" not in note and note.count("\\<b>") == 3 and "//evil" in note
    assert re.search("[a-z]://", note) is None and note.count("\\!\\[x\\]") == 3
    url = "http://prometheus:9090/graph?g0.expr=up%7Bjob%3D%22a%22%7D&g0.tab=1"
    assert alert(generatorURL=url).note("grafana").endswith(f"\n{url}")
