"""The app's routes under hostile requests, with Airflow's own log-in and its connections replaced."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.exceptions import DagRunAlreadyExists
from fastapi import Depends
from fastapi.testclient import TestClient

from airmirror.ledger import Ledger
from airmirror.ledger.pages import PagePlace, keep_document, keep_page
from airmirror.report.document import Document
from airmirror.web import alerts, app, tokens
from airmirror.web.tokens import KEPT_SECONDS, ConnectionTokens
from support import ROOT
from support.webhooks import ALERTMANAGER, GRAFANA, changed

TOKEN = {"Authorization": "Bearer token-of-alerts"}


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger(url) as ledger:
        keep_page(ledger.engine, PagePlace("data-docs", "a->b"), "w", "<p>a page</p>")
        plan = Document("failover", "a->b", "nothing is lost", True, {}, ())
        keep_document(ledger.engine, PagePlace("failover-plans", "a->b"), "p", plan)
    monkeypatch.setenv("AIRMIRROR_LEDGER", url)
    monkeypatch.setenv("AIRMIRROR_CONFIG", str(ROOT / "include" / "mirror.properties"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The connections that were looked up."""
    found: list[str] = []

    def token(conn_id: str) -> str:
        found.append(conn_id)
        return dict.fromkeys(("airmirror_alerts", "airmirror_metrics"), "token-of-alerts").get(conn_id, "")

    monkeypatch.setattr(tokens, "_token", token)
    return found


@pytest.fixture
def client(pages: None, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setattr(app, "may_see_plugins", lambda: Depends(lambda: None))
    return TestClient(app.build_app(), raise_server_exceptions=False)


def test_pages_can_do_nothing_on_airflows_origin(client: TestClient) -> None:
    page = client.get("/pages/data-docs/a-%3Eb/w.html")
    assert page.status_code == 200 and page.text == "<p>a page</p>"
    policy = page.headers["content-security-policy"]
    assert "sandbox" in policy.split("; ") and "default-src 'none'" in policy and "script" not in policy
    assert page.headers["x-content-type-options"] == "nosniff" and page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    "path",
    [
        "data-docs/a-%3Eb/nope.html",
        "data-docs/a.b/w.html",
        "audits/a-%3Eb/w.html",
        "data-docs/a-%3Eb/%00.html",
        "data-docs/a-%3Eb%00/w.html",
        "failover-plans/a-%3Eb/p.json",
        "data-docs/a-%3Eb/%25.html",
        "data-docs/a-%3Eb/_.html",
        "",
        "data-docs",
        "x/y/" + "x" * 5000 + ".html",
    ],
)
def test_what_is_no_page_is_not_found(client: TestClient, path: str) -> None:
    assert client.get("/pages/failover-plans/a-%3Eb/p.html").status_code == 200
    assert client.get(f"/pages/{path}").status_code == 404


def test_guesses_cost_no_look_ups(client: TestClient, asked: list[str]) -> None:
    assert {client.post("/alerts", json={"alerts": []}).status_code for _ in range(5)} == {401}
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 401
    assert asked == []  # nothing was sent
    guesses = [client.post("/alerts", headers={"Authorization": f"Bearer {n}"}).status_code for n in range(100)]
    assert set(guesses) == {401} and asked == ["airmirror_alerts"]
    assert client.post("/alerts", json={"alerts": []}, headers=TOKEN).status_code == 200
    assert (
        client.post("/alerts", json={"alerts": []}, headers={"Authorization": "Basic token-of-alerts"}).status_code
        == 401
    )
    codes = [client.post("/alerts", json={"alerts": []}, headers=TOKEN) for _ in range(60)]
    assert codes[-1].status_code == 429 and "this worker" in codes[-1].text and codes[-1].headers["retry-after"]


def test_metrics_are_of_the_flows_that_the_configuration_has(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that is disabled, or gone from the file, nothing is to be lost; one with an error in it has no windows now."""
    file, lines = tmp_path / "mirror.properties", "clusters = a, b, c\n"
    lines += "".join(f"{each}.bootstrap.servers = {each}:1\n" for each in "abc")
    file.write_text(
        f"{lines}a->b.enabled = true\na->c.enabled = true\na->c.window.max.ms = soon\nb->a.enabled = false\n"
    )
    monkeypatch.setenv("AIRMIRROR_CONFIG", str(file))
    with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        for name in ("a->b", "a->c", "b->a", "c->a"):
            ledger.flow(name).note({("windows", "failed"): 1})

    def flows() -> list[str]:
        return re.findall(r'airmirror_windows_total\{flow="([^"]*)"', client.get("/metrics", headers=TOKEN).text)

    assert flows() == ["a->b", "a->c"]
    file.write_text("no configuration")
    assert len(flows()) == 4, "who can't read it hides nothing"


def test_a_token_that_was_changed_counts_soon() -> None:
    now, token = 100.0, "one"
    kept = ConnectionTokens(lambda conn_id: token, clock=lambda: now)
    assert kept.of("c") == "one"
    token = "two"
    assert kept.of("c") == "one"
    now += KEPT_SECONDS
    assert kept.of("c") == "two"


def alert(**fields: Any) -> dict[str, Any]:
    labels = {"flow": "east->west"}
    return {"status": "firing", "labels": labels, "startsAt": "2026-11-21T00:00:00Z", "fingerprint": "f"} | fields


@pytest.mark.parametrize(
    ("body", "labels", "conf"),
    [
        (ALERTMANAGER, {"flow": "east->west"}, {"topics": ["alerted-orders"], "partitions": [1]}),
        (GRAFANA, {"source": "east"}, {}),  # of the whole flow
    ],
)
def test_what_alertmanager_and_grafana_send_starts_a_run(
    body: dict[str, Any], labels: dict[str, str], conf: object, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, object]] = []

    def start_run(dag_id: str, run_id: str, conf: object, *, note: str, user: str) -> tuple[str, str]:
        started.append((dag_id, conf))
        return run_id, "started"

    monkeypatch.setattr(alerts, "start_run", start_run)
    (told,) = client.post("/alerts", json=changed(body, labels), headers=TOKEN).json()["alerts"]
    assert told["outcome"] == "started" and started == [("replicate.east.west", conf)]


def test_one_bad_alert_stops_no_other(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def start_run(dag_id: str, run_id: str, conf: object, *, note: str, user: str) -> tuple[str, str]:
        started.append(run_id)
        return run_id, "started"

    monkeypatch.setattr(alerts, "start_run", start_run)
    group = [alert(startsAt="0001-01-01T00:00:00+14:00"), alert()]
    answer = client.post("/alerts", json={"alerts": group}, headers=TOKEN)
    assert answer.status_code == 422 and len(started) == 1
    assert [each["outcome"] for each in answer.json()["alerts"]] == [
        "startsAt=0001-01-01T00:00:00+14:00 is no time",
        "started",
    ]


def test_the_alerts_of_a_flow_in_one_call_start_one_run_of_the_whole_flow(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One a partition would be a queue, behind which scheduled windows wait."""
    there: dict[str, Any] = {}
    monkeypatch.setattr(alerts, "DagRun", SimpleNamespace(find=lambda dag_id, state: [*there.values()]))
    monkeypatch.setattr(alerts, "DagModel", SimpleNamespace(get_current=lambda _: None))

    def trigger_dag(_: str, *, run_id: str, conf: dict[str, Any], note: str, **__: Any) -> None:
        if run_id in there:
            raise DagRunAlreadyExists(SimpleNamespace(dag_id="d", run_id=run_id, id=1))  # type: ignore[arg-type]
        there[run_id] = SimpleNamespace(run_id=run_id, conf=conf, note=note)

    monkeypatch.setattr(alerts, "trigger_dag", trigger_dag)

    def of(partition: int, minute: int = 0, **more: Any) -> dict[str, Any]:
        labels = {"flow": "east->west", "topic": "orders", "partition": str(partition)}
        at = f"2026-11-21T00:{minute:02}:00Z"
        return alert(labels=labels, fingerprint=f"f{partition}", startsAt=at, **more)

    def told(*group: dict[str, Any]) -> set[tuple[str, str]]:
        answer = client.post("/alerts", json={"alerts": group}, headers=TOKEN)
        assert answer.status_code == 200
        return {(each["outcome"], each.get("run_id", "").partition("T")[0]) for each in answer.json()["alerts"]}

    assert told(of(3)) == {("started", "alert__f3__2026-11-21")}
    assert [run.conf for run in there.values()] == [{"topics": ["orders"], "partitions": [3]}]
    many = [of(number) for number in range(300)]
    assert told(*many) == {("started", "alerts__f9__2026-11-21")}
    whole = [*there.values()][1]
    assert whole.conf == {} and whole.note.startswith("Started by 300 alerts of ")
    assert told(*many) == {("started before", "alerts__f9__2026-11-21")}
    behind = ("a run waits already", "alerts__f9__2026-11-21")
    assert told(of(5, 1)) == told(*many, of(5, 1)) == {behind}
    assert told(of(3, status="resolved"), of(4, 1)) == {behind, ("resolved: nothing to do", "")}
    there.pop(whole.run_id)  # it has begun
    assert told(*many[:1], of(5, 1)) == {("started", "alerts__f5__2026-11-21")} and len(there) == 2
