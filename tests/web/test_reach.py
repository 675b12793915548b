"""The ways into the console's pages: by the keyboard alone, by a screen reader, by an address, from inside Airflow's frame."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from airmirror.ledger import Ledger
from airmirror.web import app
from support.browser import Seen, watched
from support.console import Questions, Viewer, fill, served
from support.pages import FLOW, open_page

pytestmark = pytest.mark.seconds


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


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until ``wanted`` has the focus, which is seen."""
    expect(wanted).to_be_visible()
    for _ in range(200):
        if wanted.evaluate("it => it === document.activeElement"):
            assert wanted.evaluate("it => getComputedStyle(it).outlineStyle") != "none", (
                "nobody sees where the focus is"
            )
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {wanted}")


def test_the_keyboard_alone_sorts_finds_and_answers(seen: Seen, viewer: Viewer, ledger: Ledger) -> None:
    fill(ledger, int(time.time() * 1000))
    page, questions = seen.page, Questions()
    questions.ask(ledger, "incident__1", [["orders", 1, 49]])
    with served(app.build_app(), "/mirror", questions) as url:
        open_page(page, url)
        tab_to(page, page.get_by_role("link", name="Decisions", exact=True))
        page.keyboard.press("Enter")
        form = page.get_by_role("group", name="What becomes of it?")
        tab_to(page, form.get_by_role("radio").first)
        page.keyboard.press("Space")
        page.keyboard.press("ArrowDown")
        expect(form.get_by_role("radio", name="Let it pass")).to_be_checked()
        tab_to(page, form.get_by_label("Reason"))
        page.keyboard.type("known since Monday")
        tab_to(page, form.get_by_role("button", name="Answer"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").filter(has_text="Answered: Let it pass")).to_be_visible()
        assert [given["params_input"]["reason"] for _, given in questions.answers] == ["known since Monday"]
        tab_to(page, page.get_by_role("link", name="east->west", exact=True).last)
        page.keyboard.press("Enter")
        tab_to(page, page.get_by_role("button", name="1 h", exact=True))
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("span=3600000"))
        tab_to(page, page.get_by_role("link", name="topics", exact=True))
        page.keyboard.press("Enter")
        tab_to(page, page.get_by_role("button", name="lag", exact=True))
        page.keyboard.press("Enter")
        expect(page.get_by_role("columnheader", name="lag", exact=True)).to_have_attribute("aria-sort", "descending")
        tab_to(page, page.get_by_role("searchbox"))
        page.keyboard.type("pay")
        expect(page.locator("tbody tr")).to_have_count(1)
    assert seen.errors == []


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
        shown = seen.page.locator("time").filter(has_text=re.compile(r"\d\d:\d\d")).first
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
