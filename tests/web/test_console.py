"""The console's numbers: what a route answers, to whom, and what of it costs nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import create_engine
from sqlalchemy.engine import Connection

from airmirror.ledger import Ledger, WindowRow, samples
from airmirror.ledger.pages import GATE, PagePlace, keep_page
from airmirror.ledger.queries import window_rows
from airmirror.ledger.samples import MOST_KEPT
from airmirror.ledger.schema import make_or_check
from airmirror.on_airflow.dags.all_dags import OF_A_FLOW
from airmirror.web.console import assets, flow, registration
from airmirror.web.console.flow import MOST_POINTS
from airmirror.wire.mappings import ResetRecord
from ledger.test_ledger import entries, load
from support import ROOT
from support.console import DAG, FLOW, HOSTILE, RUN, Viewer, add_samples, asked, fill, fill_many, sample
from support.ledgers import mapping, verified


def test_the_overview_has_each_flow_in_a_few_numbers(client: TestClient, ledger: Ledger, now: int) -> None:
    fill(ledger, now)
    found = asked(client, "/console/api/overview")
    (flow,) = found["flows"]
    assert (flow["flow"], flow["dag_id"], flow["state"]) == ("east->west", DAG, "held")
    assert (flow["lag_records"], flow["behind"], flow["partitions"], flow["topics"], flow["held"]) == (400, 1, 3, 2, 2)
    assert flow["oldest_ms"] == now - 60_000 - 700
    assert flow["verified_ms"] is None  # of orders-1, which is held, nothing was ever verified
    assert flow["records_per_second"] == pytest.approx(100) and flow["records"] == 1005
    assert (found["hidden"], found["broken"]) == (0, 0)


def test_a_run_that_failed_before_its_window_is_told_though_the_ledger_knows_nothing_of_it(
    client: TestClient, ledger: Ledger, viewer: Viewer, now: int
) -> None:
    viewer.red[DAG] = RUN
    (flow,) = asked(client, "/console/api/overview")["flows"]
    assert (flow["state"], flow["red_run"]) == ("failing", RUN)
    fill(ledger, now)  # which knows of what is held and fails: that says more
    (flow,) = asked(client, "/console/api/overview")["flows"]
    assert (flow["state"], flow["red_run"]) == ("held", "")


def test_a_flow_without_a_window_is_new_and_has_no_made_up_numbers(client: TestClient, ledger: Ledger) -> None:
    (flow,) = asked(client, "/console/api/overview")["flows"]
    assert flow["state"] == "new" and flow["lag_records"] is None and flow["verified_ms"] is None
    page = asked(client, FLOW)
    assert page["windows"] == [] and page["series"]["time"] == [] and page["partitions"]["partition"] == []
    assert asked(client, "/console/api/decisions") == {"flows": [], "decided": [], "of": 1}


def test_a_flow_has_its_windows_with_their_gates(client: TestClient, ledger: Ledger, now: int) -> None:
    fill(ledger, now)
    for judged in ("1-ab12", "2-cd34"):
        keep_page(ledger.engine, PagePlace(GATE, "east->west"), f"{RUN}#verify#{judged}", f"the page of {judged}")
    page = asked(client, FLOW)
    by_window = {row["window"]: row for row in page["windows"]}
    last = by_window[f"{RUN}#1-0009"]
    assert (last["partitions"], last["verified"], last["copied"]) == (3, 2, 155) and last["run"] == RUN
    name = "scheduled__2026-11-22T14-00-00%2B00-00-verify-2-cd34.html"
    assert last["page"] == f"airmirror/pages/data-docs/east-%3Ewest/{name}"
    assert client.get(f"/{last['page'].removeprefix('airmirror/')}").text == "the page of 2-cd34"
    assert page["reports"] == []
    assert by_window[f"{RUN}#1-0000"]["verified"] == 1
    failed = by_window[f"{RUN}#1-000a"]
    assert failed["failed"] == 1 and failed["partitions"] == 0
    columns = page["partitions"]
    assert columns["topics"] == ["orders", "payments"] and columns["state"] == ["", "held", "held"]
    assert columns["lag"] == [400, 0, 0] and columns["unverified"] == [0, 50, 0]
    assert columns["newest_ms"] == [now - 60_700, -1, -1], "ages are told of what lags only"
    assert page["phases"] == {"copy": 40.5, "gate": 3.25}


def test_a_window_is_verified_only_as_far_as_the_gate_went(client: TestClient, ledger: Ledger) -> None:
    load(ledger.flow("east->west"), entries(mapping(0, 10), mapping(10, 20, window="w2"), verified(9)))
    found = {row["window"]: row["verified"] for row in asked(client, FLOW)["windows"]}
    assert found == {"w1": 1, "w2": 0}


def test_a_window_is_summed_up_again_only_where_it_has_changed(
    client: TestClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that follows the log has thousands of mapping records, and a page asks every five seconds."""
    own, asked_for = ledger.flow("east->west"), list[list[str]]()

    def summed_up(connection: Connection, flow: str, names: Sequence[str]) -> list[WindowRow]:
        asked_for.append(sorted(names))
        return window_rows(connection, flow, names)

    monkeypatch.setattr(flow, "window_rows", summed_up)

    def shown() -> dict[str, tuple[int, int, int]]:
        rows = asked(client, FLOW)["windows"]
        return {row["window"]: (row["copied"], row["partitions"], row["verified"]) for row in rows}

    load(own, entries(mapping(0, 10), mapping(10, 20, window="w2"), verified(9)))
    assert shown() == shown() == {"w1": (10, 1, 1), "w2": (10, 1, 0)}
    load(own, entries(mapping(20, 25, window="w2"), mapping(0, 5, partition=1, window="w2"), start=3))
    assert shown()["w2"] == (20, 2, 0)
    load(own, entries(verified(24), start=5))
    assert shown()["w2"] == (20, 2, 1)
    reset = ResetRecord(
        topic="orders",
        partition=0,
        time_ms=1,
        choice="accept-loss",
        problem="",
        lost_first=20,
        lost_end=21,
        start=21,
        window="w3",
        by="ann",
        reason="",
    )
    load(own, entries(mapping(20, 24, window="w2"), reset, start=6))  # shortened, of the same time
    assert shown()["w2"][0] == 19
    assert asked_for == [["w1", "w2"], ["w2"], ["w1", "w2"]]


def test_plots_are_of_the_time_that_is_asked_for_and_bounded(client: TestClient, ledger: Ledger, now: int) -> None:
    fill(ledger, now)
    series = asked(client, f"{FLOW}?span=3600000")["series"]
    assert 59 <= len(series["time"]) <= 60 and series["records_per_second"][0] is None
    assert series["records_per_second"][5] == pytest.approx(100)
    assert series["recovery"][0] == pytest.approx((4_000 + (60 - len(series["time"])) * 1_000) / 1000)
    part = asked(client, f"{FLOW}?since={now - 600_000}&until={now - 300_000}")["series"]
    assert len(part["time"]) == 5
    add_samples(ledger, "east->west", [sample(now - 9_000_000 + n * 1_000, n) for n in range(5_000)])
    many = asked(client, f"{FLOW}?span=86400000")["series"]
    assert 60 < len(many["time"]) <= MOST_POINTS + 1
    assert client.get(f"{FLOW}?span=1").status_code == 422 and client.get(f"{FLOW}?since=x").status_code == 422


def test_a_counter_that_fell_gives_no_rate(client: TestClient, ledger: Ledger, now: int) -> None:
    add_samples(ledger, "east->west", [sample(now - 9_000, 9), sample(now - 6_000, 1), sample(now - 3_000, 2)])
    series = asked(client, f"{FLOW}?since={now - 10_000}&until={now}")["series"]
    assert series["records_per_second"] == [None, None, pytest.approx(2_000)]


def test_samples_are_noted_bounded_and_outlive_a_rebuild(
    ledger: Ledger, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "LEAST_MS", 600_000)
    fill(ledger, now)
    own = ledger.flow("east->west")
    with ledger.engine.begin() as connection:
        before = connection.exec_driver_sql("select count(*) from samples").scalar_one()
    own.note_sample(lags=True)
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql("update partition_metrics set records = records + 7 where partition = 1")
    own.note_sample(lags=False)  # too soon after the one before: a gate that judges often writes no more
    with ledger.engine.begin() as connection:
        rows = connection.exec_driver_sql("select * from samples order by time_ms desc").mappings().all()
    assert len(rows) == before + 1 and rows[0]["records"] == 1012 and rows[0]["lag_records"] == 400
    assert rows[0]["lag_ms"] == pytest.approx(60_700, abs=30_000)
    assert rows[0]["verified_ms"] is None  # of orders-1, which is held, nothing was ever verified
    add_samples(ledger, "east->west", [sample(n, 1) for n in range(MOST_KEPT)])
    own.note_sample(lags=True)
    anew = own.anew()
    assert own.replace_by(anew)
    with ledger.engine.begin() as connection:
        assert connection.exec_driver_sql("select count(*) from samples").scalar_one() == MOST_KEPT


def test_a_window_after_a_pause_has_its_own_rate(client: TestClient, ledger: Ledger, now: int) -> None:
    """Not one over the pause too, in which nothing ran."""
    fill(ledger, now)
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql("delete from samples")
    stood = sample(now - 840_000, 0)
    add_samples(ledger, "east->west", [stood])
    own, asked_for = ledger.flow("east->west"), f"{FLOW}?since={now - 900_000}&until={now + 60_000}"
    own.note_sample(lags=True, begun_ms=now - 15_000)
    series = asked(client, asked_for)["series"]
    begun, ended = series["time"][-2:]
    assert series["records_per_second"] == [None, 0, pytest.approx(1005 / (ended - begun), rel=0.01)] and begun < ended
    assert series["recovery"][1] == pytest.approx((now - 15_000 - (stood.verified_ms or 0)) / 1000)
    own.note_sample(lags=True, begun_ms=now - 15_000)  # of the same window, which follows the log
    assert len(asked(client, asked_for)["series"]["time"]) <= 4


def test_a_gate_alone_knows_no_lag(ledger: Ledger, now: int) -> None:
    fill(ledger, now)
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql("delete from samples")
    ledger.flow("east->west").note_sample(lags=False)
    with ledger.engine.begin() as connection:
        row = connection.exec_driver_sql("select * from samples").mappings().one()
    assert row["lag_records"] is None and row["lag_ms"] is None and row["records"] == 1005
    assert row["latency_ms"] == 700 and row["latency_most_ms"] == 1_500


def test_a_partition_has_its_whole_story(client: TestClient, ledger: Ledger, now: int) -> None:
    fill(ledger, now)
    story = asked(client, f"{FLOW}/partition?topic=orders&partition=0")
    assert [row["source_start"] for row in story["ranges"]] == list(range(900, -1, -100)) and not story["more"]
    first = story["ranges"][0]
    assert (
        first["copied"] == 100
        and first["verified"]
        and first["target_start"] == 900
        and first["window"] == f"{RUN}#1-0009"
    )
    assert story["verified"]["offset"] == 999 and story["numbers"]["high_watermark"] == 1400
    held = asked(client, f"{FLOW}/partition?topic=orders&partition=1")
    assert held["hold"]["by"] == "gate" and HOSTILE in held["hold"]["reason"] and not held["ranges"][0]["verified"]
    decided = asked(client, f"{FLOW}/partition?topic=payments&partition=0")
    assert [(each["action"], each["by"]) for each in decided["decisions"]] == [("hold", "ann")]
    assert [
        row["source_start"] for row in asked(client, f"{FLOW}/partition?topic=orders&partition=0&before=200")["ranges"]
    ] == [100, 0]
    assert client.get(f"{FLOW}/partition?topic=nope&partition=0").status_code == 404
    assert client.get(f"{FLOW}/partition?topic=orders&partition=-1").status_code == 422


def test_topics_and_groups(client: TestClient, ledger: Ledger, now: int) -> None:
    fill(ledger, now)
    orders, payments = asked(client, f"{FLOW}/topics")["topics"]
    assert (orders["topic"], orders["partitions"], orders["held"], orders["lag_records"]) == ("orders", 2, 1, 400)
    assert (orders["latency_least_ms"], orders["latency_most_ms"], orders["records"]) == (700, 1_500, 1000)
    assert payments["records"] == 5 and payments["oldest_ms"] is None
    groups = asked(client, f"{FLOW}/groups")
    by_group = {row["group"]: row for row in groups["rows"]}
    assert by_group[HOSTILE]["again"] == 4 and by_group[HOSTILE]["reason"] is None
    billing = by_group["billing"]
    assert (billing["exact"], billing["on_target"], billing["translated"], billing["reason"]) == (
        True,
        10,
        40,
        "it has members on west",
    )
    assert groups["rows_in_all"] == 2 and groups["synced_ms"] is None


def test_an_answer_is_asked_for_again_for_nothing(client: TestClient, ledger: Ledger, now: int) -> None:
    fill(ledger, now)
    for path in ("/console/api/overview", FLOW, f"{FLOW}/topics", f"{FLOW}/groups", "/console/api/decisions"):
        first = client.get(path)
        again = client.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert again.status_code == 304 and again.content == b"" and again.headers["etag"] == first.headers["etag"], (
            path
        )
        assert first.headers["cache-control"] == "private, no-cache"
    tag = client.get(FLOW).headers["etag"]
    ledger.flow("east->west").note({("windows", "empty"): 1})
    assert client.get(FLOW, headers={"If-None-Match": tag}).status_code == 200


def test_nobody_sees_a_flow_whose_runs_they_may_not_read(
    client: TestClient, ledger: Ledger, viewer: Viewer, now: int
) -> None:
    fill(ledger, now)
    paths = (FLOW, f"{FLOW}/topics", f"{FLOW}/groups", f"{FLOW}/partition?topic=orders&partition=0")
    viewer.dags.clear()
    assert {client.get(path).status_code for path in paths} == {403}
    assert asked(client, "/console/api/overview") == {"flows": [], "hidden": 1, "broken": 0}
    assert asked(client, "/console/api/decisions") == {"flows": [], "decided": [], "of": 0}
    viewer.dags.add("audit.east.west")  # of the same flow, but not the DAG that says who may see it
    assert client.get("/console/api/flows/audit.east.west").status_code == 404
    viewer.dags.add("no-such-dag")  # Airflow's own rule passes for what does not exist
    assert client.get("/console/api/flows/no-such-dag").status_code == 404
    viewer.logged_in = False
    files = ("/console/frame", "/console/static/host-0.js", "/console/api/overview", "/console/api/decisions", *paths)
    assert {client.get(path).status_code for path in files} == {401}


def test_any_dag_of_a_flow_leads_to_it(client: TestClient, ledger: Ledger, viewer: Viewer, now: int) -> None:
    fill(ledger, now)
    page = (ROOT / "include" / "airmirror" / "web" / "console" / "src" / "app.tsx").read_text()
    [kinds] = re.findall(r"const OURS = /\^\(([a-z_|]+)\)", page)
    assert [*OF_A_FLOW] == kinds.split("|")
    for kind in OF_A_FLOW:
        assert f"<code>{kind}.…</code>" in page, "whoever looks at another DAG reads which are ours"
        viewer.dags.add(f"{kind}.east.west")
        assert asked(client, f"/console/api/flows/{kind}.east.west")["summary"]["flow"] == "east->west"


def test_a_ledger_that_is_not_there_is_told_and_not_made(client: TestClient, viewer: Viewer, tmp_path: Path) -> None:
    answer = client.get("/console/api/overview")
    assert answer.status_code == 503 and "first window" in answer.json()["detail"]
    assert not (tmp_path / "ledger.db").exists()
    (tmp_path / "ledger.db").write_bytes(b"no database at all, but long enough to be one" * 100)
    broken = client.get(FLOW)
    assert broken.status_code == 503 and "LedgerUnavailable" in broken.text and str(tmp_path) not in broken.text


def test_a_ledger_that_was_deleted_and_made_again_is_the_new_one(
    client: TestClient, ledger: Ledger, now: int, tmp_path: Path
) -> None:
    """The process keeps its connections: they are to a file that has no name any more."""
    fill(ledger, now)
    assert [flow["state"] for flow in asked(client, "/console/api/overview")["flows"]] == ["held"]
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    engine = create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")  # another process's
    make_or_check(engine)
    engine.dispose()
    assert [flow["state"] for flow in asked(client, "/console/api/overview")["flows"]] == ["new"]


def test_a_configuration_that_cannot_be_read_is_told(client: TestClient, ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "mirror.properties").unlink()
    answer = client.get("/console/api/overview")
    assert answer.status_code == 503 and "configuration" in answer.json()["detail"] and str(tmp_path) not in answer.text


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Built files, as the build names them."""
    dist = tmp_path / "dist"
    dist.mkdir()
    files = {
        "host": "host-aaaaaaaaaaaa.js",
        "frame": "frame-bbbbbbbbbbbb.js",
        "icon": "icon-c.svg",
        "icon-dark": "icon-dark-d.svg",
    }
    for name in files.values():
        (dist / name).write_text(name)
    (dist / "manifest.json").write_text(json.dumps(files))
    return dist


def test_what_is_registered_has_no_leading_slash_and_only_what_was_built(built: Path, tmp_path: Path) -> None:
    apps, views = registration.react_apps(built, "page"), registration.external_views(built, "frame")
    assert {each["destination"] for each in apps} == {"nav", "dag", "dashboard"}
    assert {each["destination"] for each in views} == {"nav", "dag"}
    addresses = [
        value
        for each in (*apps, *views)
        for key, value in each.items()
        if key in ("bundle_url", "href", "icon", "icon_dark_mode", "url_route")
    ]
    assert len(addresses) == 20 and not [each for each in addresses if each.startswith(("/", "http"))]
    assert len({each["url_route"] for each in (*apps, *views)}) == 5, "Airflow drops the second of one route"
    assert registration.react_apps(built, "frame") == registration.external_views(built, "page") == []
    assert registration.react_apps(built, "off") == registration.external_views(built, "off") == []
    assert registration.react_apps(tmp_path / "none") == [], "what can't be loaded shows 404 on Airflow's home"
    assert registration.way({}) == registration.way({"AIRMIRROR_CONSOLE": "nonsense"}) == "page"
    assert registration.way({"AIRMIRROR_CONSOLE": "Frame"}) == "frame"


def test_files_are_kept_for_a_year_and_old_names_lead_to_the_new_ones(built: Path) -> None:
    current = assets.static("host-aaaaaaaaaaaa.js", built)
    assert "immutable" in current.headers["cache-control"] and current.media_type == "text/javascript"
    stale = assets.static("host-0123456789ab.js", built)
    assert stale.headers["cache-control"] == "no-store" and str(stale.path).endswith("host-aaaaaaaaaaaa.js")
    assert assets.static("icon-dark-0.svg", built).media_type == "image/svg+xml"
    for name in ("manifest.json", "../plugin.py", "host-aaaaaaaaaaaa.svg", "other-0.js", "host-.js", ""):
        with pytest.raises(assets.HTTPException) as refused:
            assets.static(name, built)
        assert refused.value.status_code == 404


def test_the_frame_allows_nothing_from_elsewhere(built: Path) -> None:
    page = assets.frame("/mirror/airmirror", built)
    policy = dict(rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; "))
    assert (
        policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["frame-ancestors"] == "'self'"
    )
    assert not [rule for rule in policy.values() if "http" in rule or "unsafe" in rule]
    text = bytes(page.body).decode()
    assert '<base href="/mirror/">' in text and 'src="airmirror/console/static/frame-bbbbbbbbbbbb.js"' in text
    assert '<base href="/">' in bytes(assets.frame("/airmirror", built).body).decode()
    assert (
        '<base href="/&quot;&gt;&lt;script&gt;/">' in bytes(assets.frame('/"><script>/airmirror', built).body).decode()
    )


@pytest.mark.seconds
def test_ten_thousand_partitions_and_a_thousand_groups_cost_little(
    client: TestClient, ledger: Ledger, now: int
) -> None:
    fill_many(ledger, now, partitions=10_000, groups=1_000)
    for path, most in (
        (FLOW, 500_000),
        ("/console/api/overview", 10_000),
        (f"{FLOW}/topics", 60_000),
        (f"{FLOW}/groups", 400_000),
    ):
        answer: httpx.Response = client.get(path)
        assert answer.status_code == 200 and len(answer.content) < most, (path, len(answer.content))
