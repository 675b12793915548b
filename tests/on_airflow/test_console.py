"""The console in Airflow's own page and in its frame, in a real browser, with a flow that runs."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from airmirror_local.airflow_stack import USER
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.processes import start_process, wait_until_ready
from on_airflow.conftest import VIEWER, AirflowFlow, AirflowUnderTest
from support.browser import PATIENCE_MS, Seen, log_in, started, watched
from support.hostile import numbered
from support.topics import create_topic, produce

pytestmark = [pytest.mark.long, pytest.mark.flow("shown")]
expect.set_options(timeout=PATIENCE_MS)
START_SECONDS = 300


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as found:
        yield found


def password_of(airflow: AirflowUnderTest, user: str) -> str:
    return str(json.loads((airflow.stack.directory / "passwords.json").read_text())[user])


@pytest.fixture(scope="module")
def ran(airflow: AirflowUnderTest, east: Broker, west: Broker) -> Iterator[AirflowFlow]:
    """A flow that has mirrored a hundred records."""
    topic = create_topic(east, "shown-orders", 2)
    flow = AirflowFlow(under_test=airflow, east=east, west=west, source="shown", target="west", topic=topic)
    produce(east, topic, numbered(100))
    assert flow.first_run()["state"] == "success"
    yield flow
    airflow.client.pause(flow.dag_id)


def only_ours(seen: Seen, url: str) -> None:
    """Nothing was asked of another host, and no error came up in the page."""
    assert seen.foreign(url) == [] and seen.errors == []


@pytest.mark.flow("heart")  # whose DAG of heartbeats mirrors nothing
@pytest.mark.flow("shown")
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_airflow_s_own_page_has_the_console(browser: Browser, ran: AirflowFlow, colours: str) -> None:
    airflow = ran.under_test
    url, dag = airflow.stack.url, ran.dag_id
    with watched(browser, color_scheme=colours) as seen:
        page = seen.page
        log_in(page, url, USER, airflow.stack.password)
        page.goto(url)
        expect(page.locator(".am-card")).to_contain_text("Airmirror")
        expect(page.locator(".am-card")).to_contain_text("nothing held")
        expect(page.get_by_text("404", exact=True)).to_have_count(0)  # flows may have it in their names
        assert page.evaluate("React.version").startswith("19.2."), "@types/react of the console is of another version"
        page.goto(f"{url}/plugin/airmirror")
        link = page.get_by_role("link", name="shown->west", exact=True)
        expect(link).to_be_visible()
        link.click()
        expect(page.get_by_role("region", name="Windows")).to_be_visible()
        assert page.url.endswith(f"/plugin/airmirror/flow/{dag}")
        expect(page.locator(".am-facts")).to_contain_text("verified")
        expect(page.locator("canvas.am-canvas")).to_be_visible()
        assert page.evaluate("document.querySelectorAll('.uplot').length") == 6
        shade = page.evaluate("getComputedStyle(document.querySelector('.airmirror')).colorScheme")
        assert shade == colours
        run = page.get_by_role("region", name="Windows").get_by_role("link").first
        assert (run.get_attribute("href") or "").startswith(f"{url}/dags/{dag}/runs/")
        expect(page.get_by_role("link", name="Data Docs").first).to_be_visible()
        docs = page.get_by_role("link", name="Data Docs").first.get_attribute("href") or ""
        assert page.request.get(docs).status == 200
        run.click()
        expect(page.get_by_text("replicate_window").first).to_be_visible()
        page.goto(f"{url}/dags/{dag}/plugin/airmirror-flow")
        expect(page.get_by_role("region", name="Windows")).to_be_visible()
        page.goto(f"{url}/dags/heartbeats.heart/plugin/airmirror-flow")
        expect(page.locator(".am-empty")).to_contain_text("This DAG mirrors nothing")
        page.set_viewport_size({"width": 400, "height": 800})
        page.goto(f"{url}/plugin/airmirror?view=table")
        expect(link).to_be_attached()
        only_ours(seen, url)


GATE = """
name: at-most-a-thousand
flows: ["shown->west"]
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: copied, max_value: 1000}
    notes: Nobody sells so much at night.
"""


def test_a_red_run_is_understood_and_decided_in_the_console(browser: Browser, ran: AirflowFlow) -> None:
    airflow = ran.under_test
    suite = airflow.expectations / "shown.yaml"
    suite.write_text(GATE)
    produce(ran.east, ran.topic, numbered(1_100), partition=0)
    assert ran.run()[1] == "failed"
    (incident,) = ran.client.runs("decide.shown.west")
    with watched(browser) as seen:
        page = seen.page
        log_in(page, airflow.stack.url, USER, airflow.stack.password)
        can_be_answered_without_a_reason(page, f"{airflow.stack.url}/dags/decide.shown.west", incident["dag_run_id"])
        page.goto(airflow.stack.url)
        page.locator(".am-card").get_by_role("link", name="1 partition held").click()
        expect(page.get_by_text("Nobody sells so much at night").first).to_be_visible()
        form = page.get_by_role("group", name="What becomes of it?")
        form.get_by_role("radio", name="Let it pass").check()
        form.get_by_label("Reason").fill("It was the sale.")
        form.get_by_role("button", name="Answer: Let it pass").click()
        expect(page.get_by_text("Nothing waits for a decision")).to_be_visible()
        assert ran.client.wait_for_run("decide.shown.west", incident["dag_run_id"]) == "success"
        page.goto(f"{airflow.stack.url}/plugin/airmirror/flow/{ran.dag_id}")
        expect(page.get_by_role("heading", name="Decided")).to_be_visible()
        expect(page.get_by_text(f"let pass, by {USER}")).to_be_visible()
        expect(page.locator(".am-facts .am-decided")).to_be_visible()
        only_ours(seen, airflow.stack.url)
    path = f"/dags/decide.shown.west/dagRuns/{incident['dag_run_id']}/taskInstances/ask/-1/hitlDetails"
    given = ran.client.request("GET", path)
    assert given["chosen_options"] == ["Let it pass"] and given["params_input"] == {"reason": "It was the sale."}
    assert given["responded_by_user"]["name"] == USER
    suite.unlink()
    assert ran.run()[1] == "success"
    assert ran.assert_equal() == 1_200


def can_be_answered_without_a_reason(page: Page, dag: str, run_id: str) -> None:
    """In Airflow's own page an answer must be chosen, and no more."""
    page.goto(f"{dag}/runs/{run_id}/tasks/ask/required_actions")
    respond = page.get_by_role("button", name="Respond")
    expect(respond).to_be_disabled()
    page.locator("#element_chosen_options").get_by_role("combobox").fill("Let it")
    page.get_by_role("option", name="Let it pass").click()
    expect(respond).to_be_enabled()


@contextmanager
def another_api_server(airflow: AirflowUnderTest, tmp_path: Path, shown: str) -> Iterator[str]:
    """A second API server of the same Airflow, under a base path, that shows the console its own way."""
    port = free_port()
    url = f"http://{LOOPBACK}:{port}/mirror"
    environment = airflow.stack.environment | {
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__PORT": str(port),
        "AIRMIRROR_CONSOLE": shown,
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-m", "airflow", "api-server", "--workers", "1"]
    server = start_process("second API server", command, tmp_path / "api-server.log", environment=environment)
    try:
        wait_until_ready(server, lambda: _answers(url), START_SECONDS)
        yield url
    finally:
        server.kill()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/v2/version", timeout=5, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def test_a_viewer_sees_it_under_a_base_path(browser: Browser, ran: AirflowFlow, tmp_path: Path) -> None:
    airflow = ran.under_test
    with another_api_server(airflow, tmp_path, "page") as url, watched(browser) as seen:
        page = seen.page
        log_in(page, url, VIEWER, password_of(airflow, VIEWER))
        page.goto(f"{url}/")
        expect(page.locator(".am-card")).to_contain_text("Airmirror")
        page.locator(".am-card").get_by_role("link", name="Airmirror").click()
        page.get_by_role("link", name="shown->west", exact=True).click()
        expect(page.get_by_role("region", name="Windows")).to_be_visible()
        assert page.url == f"{url}/plugin/airmirror/flow/{ran.dag_id}"
        page.reload()
        expect(page.get_by_role("region", name="Windows")).to_be_visible()
        ours = [each for each in seen.requests if "airmirror" in each]
        assert ours and all(each.startswith(f"{url}/") for each in ours)
        only_ours(seen, url)
        for path in ("overview", f"flows/{ran.dag_id}", "../static/host-0.js", "../frame"):
            answer = httpx.get(f"{url}/airmirror/console/api/{path}", trust_env=False, timeout=60)
            assert answer.status_code == 401, f"{path} was answered to nobody"


def test_the_frame_has_the_same_pages(browser: Browser, ran: AirflowFlow, tmp_path: Path) -> None:
    airflow = ran.under_test
    with another_api_server(airflow, tmp_path, "frame") as url, watched(browser, color_scheme="dark") as seen:
        page = seen.page
        log_in(page, url, VIEWER, password_of(airflow, VIEWER))
        page.goto(f"{url}/plugin/airmirror-frame")
        frame = page.frame_locator("iframe")
        frame.get_by_role("link", name="shown->west", exact=True).click()
        expect(frame.get_by_role("region", name="Windows")).to_be_visible()
        assert frame.locator("html").evaluate("html => html.className") == "dark"
        expect(page).to_have_url(re.compile(re.escape(ran.dag_id)))
        page.goto(f"{url}/dags/{ran.dag_id}/plugin/airmirror-flow-frame")
        expect(frame.get_by_role("region", name="Windows")).to_be_visible()
        frame.get_by_role("region", name="Windows").get_by_role("link").first.click()
        page.wait_for_url(re.compile(rf"/mirror/dags/{re.escape(ran.dag_id)}/runs/"))
        assert seen.foreign(url) == []
        assert not [each for each in seen.errors if "Content Security Policy" in each]
        answer = page.request.get(f"{url}/airmirror/console/frame")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
