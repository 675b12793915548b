"""A person migrates a move group in Airflow's own pages: the form, the questions, the answers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from airmirror.on_airflow.dags.runbooks import asking
from airmirror_local.airflow_stack import USER
from on_airflow.conftest import WAITING, AirflowFlow
from on_airflow.test_console import log_in
from on_airflow.test_failover import says
from support.browser import PATIENCE_MS, started, watched
from support.following import numbered
from support.groups import await_committed, commit, member
from support.topics import assert_mirrored, produce

expect.set_options(timeout=PATIENCE_MS)
GO = "Do it"
GROUP, REMOTE, DAG = "walked-billing", "walked.walked-orders", "operate.walked.west"


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.flow("walked")
def test_a_person_migrates_in_airflow_s_pages(flow: AirflowFlow) -> None:
    assert flow.first_run()["state"] == "success"
    for partition in (0, 1):
        produce(flow.east, flow.topic, numbered(100, 1000 * partition), partition=partition)
    commit(flow.east, GROUP, {(flow.topic, 0): 40})
    url = flow.under_test.stack.url
    with started() as browser, watched(browser) as seen:
        page = seen.page
        log_in(page, url, USER, flow.under_test.stack.password)
        run_id = triggered(page, flow, "moving day")
        answered(page, flow, run_id, "cut_over_consumers")
        await_committed(flow.west, GROUP, {(REMOTE, 0): 40}, 300)
        with member(flow.west, GROUP, REMOTE):
            flow.asked(DAG, run_id, task("cut_over_producers"))
        answered(page, flow, run_id, "cut_over_producers")
        flow.asked(DAG, run_id, task("finish"))
        says(flow, DAG, run_id, "migration.cut_over_producers", "start your producers on west:")
        answered(page, flow, run_id, "finish")
        assert flow.client.wait_for_run(DAG, run_id) == "success"
        assert seen.foreign(url) == []
    assert assert_mirrored(flow.east, flow.topic, flow.west, REMOTE) == 200


def task(step: str) -> str:
    return f"migration.{asking(step)}"


def triggered(page: Page, flow: AirflowFlow, reason: str) -> str:
    """Fill in the DAG's form and start a run: its id."""
    url = flow.under_test.stack.url
    page.goto(f"{url}/dags/{DAG}")
    page.get_by_role("button", name="Trigger").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Move group")
    dialog.locator("#element_runbook").get_by_role("combobox").fill("migration")
    page.get_by_role("option", name="migration").click()
    dialog.locator("input[name=element_reason]").fill(reason)
    dialog.get_by_role("button", name="Trigger").last.click()
    (run,) = flow.client.wait(lambda: flow.client.runs(DAG))
    return str(run["dag_run_id"])


def answered(page: Page, flow: AirflowFlow, run_id: str, step: str) -> None:
    """See what the step asks on its task's page, and say that it shall be done; again, if a later attempt asks again."""
    while not _is_done(flow, run_id, step):
        question = flow.asked(DAG, run_id, task(step))
        page.goto(f"{flow.under_test.stack.url}/dags/{DAG}/runs/{run_id}/tasks/{task(step)}/required_actions")
        expect(page.get_by_text(question["subject"]).first).to_be_visible()
        expect(page.get_by_text("moving day").first).to_be_visible()
        page.get_by_role("button", name=GO).click()
        expect(page.get_by_text(re.compile("Response received at"))).to_be_visible()
        flow.client.wait(lambda: _state(flow, run_id, step) not in WAITING)


def _is_done(flow: AirflowFlow, run_id: str, step: str) -> bool:
    """Whether the question's task has taken an answer; it waits for one otherwise."""
    return flow.client.wait(lambda: {"success", *WAITING} & {_state(flow, run_id, step)}) == {"success"}


def _state(flow: AirflowFlow, run_id: str, step: str) -> str:
    return str(flow.client.tasks(DAG, run_id)[task(step)]["state"])
