"""The console's pages in a real browser, as the frame has them: all that needs no Airflow, and every page of it.

``tests/on_airflow/test_console.py`` has them in Airflow's own page, with a flow that runs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from airmirror.ledger import Ledger
from airmirror.local import LOCAL
from airmirror.web import app
from support.browser import PATIENCE_MS, Seen, started, watched
from support.console import HOSTILE, Questions, Viewer, add_samples, fill, fill_many, sample, served

pytestmark = pytest.mark.seconds
expect.set_options(timeout=PATIENCE_MS)
FLOW = "flow/replicate.east.west"
PAGES = {
    "": "east->west",
    f"{FLOW}?span=3600000": "Over time",
    "partition/replicate.east.west?topic=orders&partition=0": "Ranges, the newest first",
    "topics/replicate.east.west": "east.payments",
    "groups/replicate.east.west": "billing",
    "decisions": "Accept the loss",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as found:
        yield found


@pytest.fixture
def url(viewer: Viewer) -> Iterator[str]:
    """Where the console is served, under a base path."""
    with served(app.build_app(), "/mirror") as found:
        yield found


@pytest.fixture
def seen(browser: Browser) -> Iterator[Seen]:
    with watched(browser) as found:
        yield found


def open_page(page: Page, url: str, path: str = "") -> None:
    page.goto(f"{url}/airmirror/console/frame{'/' if path and path[0] != '?' else ''}{path}")
    expect(page.get_by_test_id("airmirror")).to_be_visible()


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_shows_what_the_ledger_has(
    browser: Browser, url: str, ledger: Ledger, colours: str, width: int
) -> None:
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
        assert seen.errors == [] and seen.foreign(url) == []
        ours = (f"{url}/airmirror/", f"{url}/api/v2/dags/decide.east.west/")
        assert all(each.startswith(ours) for each in seen.requests if not each.endswith("/favicon.ico"))


def test_what_comes_from_a_log_is_text_everywhere(seen: Seen, url: str, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    for path in (
        "decisions",
        "groups/replicate.east.west",
        "partition/replicate.east.west?topic=orders&partition=1",
    ):
        open_page(seen.page, url, path)
        expect(seen.page.get_by_text(HOSTILE).first).to_be_attached()
        assert seen.page.locator("img").count() == 0 and seen.page.title() == "Airmirror", path
    open_page(seen.page, url, f"groups/replicate.east.west?group={HOSTILE}&find={HOSTILE}")
    expect(seen.page.locator("code", has_text="groups apply").first).to_contain_text(
        f"--group '{HOSTILE.split(chr(39))[0]}"
    )
    open_page(seen.page, url, f"{HOSTILE}/{HOSTILE}")
    expect(seen.page.get_by_text("There is no such page")).to_be_visible()
    assert seen.errors == [] and seen.page.locator("img").count() == 0


def test_a_question_is_answered_on_the_page(seen: Seen, viewer: Viewer, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    questions = Questions(asked={"incident__1": [["orders", 1, 49]]}, refusal=f"not a respondent {HOSTILE}")
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
        questions.asked["incident__2"] = [["orders", 1, 20]]
        expect(form).to_contain_text("None of it is held at these offsets any more")
    assert seen.errors == []


def test_where_nobody_asks_the_page_asks_again(seen: Seen, viewer: Viewer, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    questions = Questions()
    with served(app.build_app(), "/mirror", questions) as url:
        open_page(seen.page, url, "decisions")
        seen.page.get_by_role("button", name="Ask now about all of it").click()
        expect(seen.page.get_by_role("status").filter(has_text="Asked")).to_be_visible()
    assert questions.runs == [{"logical_date": None, "conf": {"held": [["orders", 1, 49]]}}]


def test_a_number_that_changes_is_shown_without_a_reload_and_one_that_does_not_costs_nothing(
    seen: Seen, url: str, ledger: Ledger
) -> None:
    now = int(time.time() * 1000)
    fill(ledger, now)
    codes: list[int] = []
    seen.page.on("response", lambda answer: codes.append(answer.status) if "/api/" in answer.url else None)
    open_page(seen.page, url)
    expect(seen.page.get_by_role("link", name="2", exact=True)).to_be_visible()
    with seen.page.expect_response(lambda answer: "/api/overview" in answer.url and answer.status == 304):
        pass
    assert codes[0] == 200 and set(codes) == {200, 304}, "one request each five seconds, answered with nothing"
    ledger.flow("east->west").note({}, {("verified", ""): now / 1000 - 3 * 86_400})
    expect(seen.page.locator("tbody")).to_contain_text("3 days")


def look_again(page: Page) -> None:
    """Have the page ask now, as it does when its tab is looked at again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


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
    expect(seen.page.get_by_role("alert")).to_contain_text("there is no ledger yet: the first window makes it")
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


def test_the_address_has_the_state_and_the_keyboard_reaches_it(seen: Seen, url: str, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    page = seen.page
    open_page(page, url)
    page.get_by_role("link", name="east->west", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Over time")).to_be_visible()
    page.get_by_role("button", name="1 h", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".am-plot").first).to_have_attribute("aria-label", re.compile("(59|60) points"))
    assert "span=3600000" in page.url
    page.locator("canvas.am-canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".am-heat .am-near")).to_contain_text("orders-1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="orders-1")).to_be_visible()
    open_page(page, url, "topics/replicate.east.west?sort=-topic&find=o")
    expect(page.locator("tbody tr").first).to_contain_text("orders")
    page.get_by_role("searchbox").fill("pay")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "find=pay" in page.url
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_dragging_over_a_plot_zooms(seen: Seen, url: str, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    page = seen.page
    open_page(page, url, f"{FLOW}?span=3600000")
    over = page.locator(".am-plot .u-over").first
    expect(over).to_be_visible()
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=5)
    page.mouse.up()
    expect(page.get_by_role("button", name="back from")).to_be_visible()
    assert "since=" in page.url and "until=" in page.url
    page.get_by_role("button", name="back from").click()
    expect(page.get_by_role("button", name="back from")).to_have_count(0)


def test_times_are_the_viewer_s_with_utc_as_a_tooltip(browser: Browser, url: str, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    with watched(browser, timezone_id="Asia/Kolkata") as seen:
        open_page(seen.page, url, FLOW)
        shown = seen.page.locator("dl time").first
        utc = shown.get_attribute("title") or ""
        assert utc.endswith(" UTC")
        hours, minutes = (int(part) for part in utc[11:16].split(":"))
        there = (hours * 60 + minutes + 330) % 1440
        assert f"{there // 60:02}:{there % 60:02}" in shown.inner_text()


def test_in_airflow_s_sandbox_links_lead_out_of_the_frame_and_colours_into_it(
    seen: Seen, url: str, ledger: Ledger
) -> None:
    fill(ledger, int(time.time() * 1000))
    page = seen.page
    sandbox = "allow-scripts allow-same-origin allow-forms allow-downloads"  # Airflow 3.3.2's
    src = f"{url}/airmirror/console/frame?dag=replicate.east.west"
    host = f'<html class="dark"><iframe sandbox="{sandbox}" src="{src}" width="1200" height="700"></iframe></html>'
    page.route(f"{url}/host", lambda route: route.fulfill(body=host, content_type="text/html"))
    page.goto(f"{url}/host")
    frame = page.frame_locator("iframe")
    run = frame.get_by_role("region", name="Windows").get_by_role("link").first
    expect(run).to_be_visible()
    dark = "document.querySelector('iframe').contentDocument.documentElement.className"
    assert page.evaluate(dark) == "dark"
    page.evaluate("document.documentElement.className = 'light'")
    expect(frame.locator("html")).not_to_have_class("dark")
    page.route("**/dags/**", lambda route: route.fulfill(body="the run", content_type="text/html"))
    run.click()
    expect(page.get_by_text("the run")).to_be_visible()
    assert page.url.startswith(f"{url}/dags/replicate.east.west/runs/scheduled__")


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, url: str, ledger: Ledger, colours: str) -> None:
    """Names and roles, contrast, what the keyboard reaches: axe-core's rules."""
    fill(ledger, int(time.time() * 1000))
    axe = (LOCAL / "console" / "node_modules" / "axe-core" / "axe.min.js").read_text()
    with watched(browser, color_scheme=colours) as seen:
        for path in PAGES:
            open_page(seen.page, url, path)
            expect(seen.page.locator(".am-old")).to_be_visible()
            seen.page.evaluate(axe)
            found = seen.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            serious = [
                (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"][:300])
                for each in found["violations"]
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == [], path


@pytest.mark.long
def test_ten_thousand_partitions_are_shown_soon(seen: Seen, url: str, ledger: Ledger) -> None:
    now = int(time.time() * 1000)
    fill_many(ledger, now, partitions=10_000, groups=1_000)
    add_samples(ledger, "east->west", [sample(now - 3_600_000 + n * 6_000, n) for n in range(600)])
    page = seen.page
    for path in (FLOW, "groups/replicate.east.west"):
        open_page(page, url, path)
        expect(page.locator("tbody tr").first).to_be_visible()
        assert page.locator("tbody tr").count() <= 200, "rows beyond the first hundred come on demand"
    open_page(page, url, FLOW)
    expect(page.locator("canvas.am-canvas")).to_be_visible()
    expect(page.locator(".am-heat")).to_have_attribute(
        "aria-label", "Map of 10,000 partitions, 3,400 partitions with a lag"
    )
    assert seen.errors == []
