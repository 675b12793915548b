"""The console's pages in a real browser, as the frame has them: what each shows, all that needs no Airflow.

``tests/on_airflow/test_console.py`` has them in Airflow's own page, with a flow that runs.
"""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from airmirror.ledger import Ledger
from airmirror.ledger.metrics import Standing
from airmirror.local import LOCAL
from airmirror.partitions import TopicPartition
from airmirror.web import app
from ledger.test_ledger import entries, load
from support.browser import Seen, watched
from support.console import HOSTILE, RUN, Questions, Stopped, Viewer, decide, fill, hold_many, served
from support.ledgers import mapping
from support.pages import FLOW, PAGES, open_page

pytestmark = pytest.mark.seconds


@pytest.mark.parametrize(("colours", "width"), [pytest.param("light", 1280, marks=pytest.mark.long), ("dark", 400)])
def test_every_page_shows_what_the_ledger_has_to_all(
    browser: Browser, url: str, ledger: Ledger, colours: str, width: int
) -> None:
    """Nothing serious of names and roles, contrast, what the keyboard reaches: axe-core's rules."""
    axe = (LOCAL / "console" / "node_modules" / "axe-core" / "axe.min.js").read_text()
    fill(ledger, int(time.time() * 1000))
    with watched(browser, color_scheme=colours, viewport={"width": width, "height": 800}) as seen:
        for path, text in PAGES.items():
            open_page(seen.page, url, path)
            expect(seen.page.get_by_text(text).first).to_be_attached()
            expect(seen.page.locator(".am-old")).to_contain_text("asked")
            # What is wide scrolls in a place of its own; the page does not.
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, path
            light = seen.page.evaluate("getComputedStyle(document.querySelector('.airmirror')).color")
            assert (light == "rgb(24, 24, 27)") == (colours == "light"), light
            seen.page.evaluate(axe)
            found = seen.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            serious = [
                (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"][:300])
                for each in found["violations"]
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == [], path
        assert seen.errors == [] and seen.foreign(url) == []
        ours = (f"{url}/airmirror/", f"{url}/api/v2/dags/decide.east.west/")
        assert all(each.startswith(ours) for each in seen.requests if not each.endswith("/favicon.ico"))


def test_what_comes_from_a_log_is_text_everywhere(seen: Seen, url: str, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    own = ledger.flow("east->west")  # no broker has a topic of such a name; a ledger may be told of one
    load(own, entries(mapping(0, 10, topic=HOSTILE), start=100))
    own.note_standings([Standing("orders", 1, "east.orders", 50, 50), Standing(HOSTILE, 0, f"east.{HOSTILE}", 10, 20)])
    own.note_window(f"{RUN}#1-000b", {TopicPartition(HOSTILE, 0): Stopped()}, lambda key: True)
    for path in (
        "decisions",
        "groups/replicate.east.west",
        "partition/replicate.east.west?topic=orders&partition=1",
        "record/replicate.east.west?topic=orders&partition=1&offset=7&as=text",
        FLOW,
        "topics/replicate.east.west",
        f"partition/replicate.east.west?{urlencode({'topic': HOSTILE, 'partition': 0})}",
    ):
        open_page(seen.page, url, path)
        expect(seen.page.get_by_text(HOSTILE).first).to_be_attached()
        if path == FLOW:
            expect(seen.page.get_by_text("`airmirror status` says more").first).to_be_visible()
        assert seen.page.locator("img").count() == 0 and seen.page.title() == "Airmirror", path
    open_page(seen.page, url, f"groups/replicate.east.west?group={HOSTILE}&find={HOSTILE}")
    expect(seen.page.locator("code", has_text="groups apply").first).to_contain_text(
        f"--group '{HOSTILE.split(chr(39))[0]}"
    )
    hidden = urlencode({"group": "a\x1b\u202e\\b"})
    open_page(seen.page, url, f"groups/replicate.east.west?{hidden}")
    expect(seen.page.locator("code", has_text="groups apply").first).to_contain_text(
        r"--group $'a\u001b\u202e\\b' --flow"
    )
    open_page(seen.page, url, f"{FLOW}?since=x&until=9e18")
    expect(seen.page.get_by_text("back from NaN – 9000000000000000000")).to_be_visible()
    open_page(seen.page, url, f"{HOSTILE}/{HOSTILE}")
    expect(seen.page.get_by_text("There is no such page")).to_be_visible()
    assert seen.errors == [] and seen.page.locator("img").count() == 0


def look_again(page: Page) -> None:
    """Have the page ask now, as it does when its tab is looked at again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_question_is_answered_on_the_page(seen: Seen, viewer: Viewer, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    questions = Questions(refusal=f"not a respondent {HOSTILE}")
    questions.ask(ledger, "incident__1", [["orders", 1, 49]])
    with served(app.build_app(), "/mirror", questions) as url:
        open_page(seen.page, url, "decisions")
        form = seen.page.get_by_role("group", name="What becomes of it?")
        expect(form).to_contain_text("orders-1 up to offset 49")
        send = form.get_by_role("button", name="Answer")
        expect(send).to_be_disabled()
        form.get_by_role("radio", name="Let it pass").check()
        form.get_by_label("Reason").fill("known since Monday")
        expect(send).to_have_text("Answer: Let it pass, which can't be undone")
        send.click()
        expect(form.get_by_role("alert")).to_contain_text("not a respondent")
        assert questions.answers == [] and seen.page.locator("img").count() == 0
        questions.refusal = ""
        form.get_by_label("Reason").press("Enter")
        expect(seen.page.get_by_role("status").filter(has_text="Answered: Let it pass")).to_be_visible()
        expect(form).to_have_count(0)
        given = {"chosen_options": ["Let it pass"], "params_input": {"reason": "known since Monday"}}
        assert questions.answers == [("incident__1", given)]
        questions.answers.clear()  # the task could not note it, and asks again
        seen.page.clock.set_system_time(time.time() + 60)
        look_again(seen.page)
        expect(form).to_contain_text("orders-1 up to offset 49")
        expect(seen.page.get_by_role("status").filter(has_text="Answered")).to_have_count(0)
        questions.asked.clear()
        questions.ask(ledger, "incident__2", [["orders", 1, 20]])
        look_again(seen.page)
        expect(form).to_contain_text("None of it is held at these offsets any more")
    assert seen.errors == []


def test_a_question_about_the_rest_shows_its_own_partitions(seen: Seen, viewer: Viewer, ledger: Ledger) -> None:
    hold_many(ledger, 150)
    questions = Questions()
    questions.ask(ledger, "rest", [["many", number, -1] for number in range(100, 150)])
    with served(app.build_app(), "/mirror", questions) as url:
        open_page(seen.page, url, "decisions")
        form = seen.page.get_by_role("group", name="What becomes of it?")
        expect(form).to_contain_text("For 50 partitions: many-100 up to offset")
        expect(form).not_to_contain_text("None of it is held")
        form.get_by_role("button", name="the same by command").first.click()
        expect(form).to_contain_text("--partition 149")
        expect(form).not_to_contain_text("--partition 99")
    assert seen.errors == []


def test_what_is_decided_is_told_by_whom_and_waits_for_the_next_run(
    seen: Seen, url: str, viewer: Viewer, ledger: Ledger
) -> None:
    now = int(time.time() * 1000)
    fill(ledger, now)
    viewer.red["replicate.east.west"] = RUN
    decide(ledger, now + 60_000)
    page = seen.page
    open_page(page, url, "?view=table")
    expect(page.locator("tbody")).to_contain_text("decided by ann")
    expect(page.get_by_role("link", name="the last run")).to_be_visible()
    open_page(page, url, FLOW)
    expect(page.get_by_role("heading", name="Decided")).to_be_visible()
    expect(page.get_by_text("orders-1: let pass, by ann")).to_be_visible()
    expect(page.locator(".am-failing")).to_have_count(0)
    gates = page.get_by_role("row", name=RUN).get_by_role("cell")
    expect(gates.filter(has_text="passed: 2 of 3 · let pass by ann: 1")).to_have_count(1)
    expect(gates.filter(has_text="nothing was committed")).to_have_count(1)  # of the window that failed
    open_page(page, url, "decisions")
    expect(page.get_by_role("heading", name="decided, waits for the next run")).to_be_visible()
    assert seen.errors == []


def test_where_nobody_asks_the_page_asks_again(seen: Seen, viewer: Viewer, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    questions = Questions()
    with served(app.build_app(), "/mirror", questions) as url:
        open_page(seen.page, url, "decisions")
        seen.page.get_by_role("button", name="Ask now about all of it").click()
        expect(seen.page.get_by_role("status").filter(has_text="Asked")).to_be_visible()
    assert questions.runs == [{"logical_date": None, "conf": {}}]


def test_a_number_that_changes_is_shown_without_a_reload_and_one_that_does_not_costs_nothing(
    seen: Seen, url: str, ledger: Ledger
) -> None:
    now = int(time.time() * 1000)
    fill(ledger, now)
    codes: list[int] = []
    seen.page.on("response", lambda answer: codes.append(answer.status) if "/api/" in answer.url else None)
    seen.page.clock.install()
    open_page(seen.page, url)
    expect(seen.page.get_by_role("link", name="2", exact=True)).to_be_visible()
    with seen.page.expect_response(lambda answer: "/api/overview" in answer.url and answer.status == 304):
        seen.page.clock.fast_forward(5_000)
    assert codes[0] == 200 and set(codes) == {200, 304}, "one request each five seconds, answered with nothing"
    ledger.flow("east->west").note_standings([Standing("orders", 0, "east.orders", 1000, 1777)])
    seen.page.clock.fast_forward(5_000)
    expect(seen.page.locator("tbody")).to_contain_text("777 records")


def test_an_old_answer_stays_and_is_called_old(
    browser: Browser, viewer: Viewer, ledger: Ledger, tmp_path: Path
) -> None:
    fill(ledger, int(time.time() * 1000))
    with served(app.build_app()) as url, watched(browser) as seen:
        open_page(seen.page, url)
        expect(seen.page.get_by_role("link", name="east->west", exact=True)).to_be_visible()
        (tmp_path / "ledger.db").rename(tmp_path / "gone.db")
        look_again(seen.page)
        expect(seen.page.get_by_role("alert")).to_contain_text("The ledger can't be read.")
        expect(seen.page.locator(".am-old")).to_contain_text("These numbers are old")
        expect(seen.page.get_by_role("link", name="east->west", exact=True)).to_be_visible()
        (tmp_path / "gone.db").rename(tmp_path / "ledger.db")
        look_again(seen.page)
        expect(seen.page.get_by_role("alert")).to_have_count(0)
        viewer.logged_in = False
        look_again(seen.page)
        expect(seen.page.get_by_role("alert")).to_contain_text("Your session has ended.")
        login = seen.page.get_by_role("link", name="Log in again").get_attribute("href") or ""
        assert login.startswith(f"{url}/auth/login?next=http")
        viewer.logged_in = True
        look_again(seen.page)
        expect(seen.page.get_by_role("alert")).to_have_count(0)
        seen.page.context.set_offline(True)
        look_again(seen.page)
        expect(seen.page.get_by_role("alert")).to_contain_text("does not answer")
        expect(seen.page.get_by_role("link", name="east->west", exact=True)).to_be_visible()


def test_who_may_not_see_is_told_so(seen: Seen, url: str, viewer: Viewer, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    viewer.dags.clear()
    open_page(seen.page, url)
    expect(seen.page.locator(".am-empty")).to_contain_text("No flow that you may see: 1 flow of the configuration")
    open_page(seen.page, url, FLOW)
    expect(seen.page.get_by_role("alert")).to_contain_text("You may not see this")


def test_empty_states_tell_the_next_step(seen: Seen, url: str, viewer: Viewer) -> None:
    open_page(seen.page, url)
    expect(seen.page.get_by_role("alert")).to_have_text(
        "Nothing has run yet: there is no ledger; the first window of a DAG replicate.<source>.<target> makes it"
    )
    open_page(seen.page, url, "?dag=some.other.dag")
    expect(seen.page.locator(".am-empty")).to_contain_text("This DAG mirrors nothing")


def test_a_flow_without_a_window_has_empty_pages(seen: Seen, url: str, ledger: Ledger) -> None:
    for path, text in {
        "": "switch its DAG",
        FLOW: "No window has committed anything yet",
        "topics/replicate.east.west": "No topic yet",
        "groups/replicate.east.west": "No group was seen",
        "decisions": "Nothing waits for a decision",
    }.items():
        open_page(seen.page, url, path)
        expect(seen.page.get_by_text(text).first).to_be_visible()
    assert seen.errors == []
