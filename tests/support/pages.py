"""The pages of the console in a browser: their paths, what each shows of ``console.fill``, and how one is opened."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from support.browser import PATIENCE_MS

expect.set_options(timeout=PATIENCE_MS)
FLOW = "flow/replicate.east.west"
PAGES = {
    "": "east->west",
    f"{FLOW}?span=3600000": "Over time",
    "partition/replicate.east.west?topic=orders&partition=0": "Ranges, the newest first",
    "record/replicate.east.west?topic=orders&partition=1&offset=7": "They differ: value.",
    "topics/replicate.east.west": "east.payments",
    "groups/replicate.east.west": "billing",
    "decisions": "Accept the loss",
}


def open_page(page: Page, url: str, path: str = "") -> None:
    """Open a page of the frame, which is served at ``url``."""
    page.goto(f"{url}/airmirror/console/frame{'/' if path and path[0] != '?' else ''}{path}")
    expect(page.get_by_test_id("airmirror")).to_be_visible()
