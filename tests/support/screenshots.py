"""``make screenshots``: the console's pictures in docs/images, of made-up numbers, by the machine's Chromium."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect

from airmirror.ledger import Ledger
from airmirror.web import app
from support import ROOT
from support.browser import PATIENCE_MS, started, watched
from support.console import Questions, fill, fill_many, pretend, pretend_records, served

FLOWS = {"east->west": ".*", "south->west": ".*", "west->north": ".*", "north->east": ".*"}
PAGES = {
    "overview": ("", 1280, 520),
    "flow": ("/flow/replicate.east.west?span=3600000", 1280, 1100),
    "partition": ("/partition/replicate.east.west?topic=orders&partition=0", 1280, 620),
    "record": ("/record/replicate.east.west?topic=orders&partition=1&offset=7", 1280, 800),
    "topics": ("/topics/replicate.east.west", 1280, 340),
    "groups": ("/groups/replicate.east.west", 1280, 300),
    "decisions": ("/decisions", 1280, 900),
}


def take(into: Path) -> None:
    """Write a picture of each page."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        pretend(Path(place), patch, FLOWS)
        pretend_records(patch, header="unit")
        with (
            closing(Ledger(f"sqlite:///{place}/ledger.db")) as ledger,
            served(app.build_app(), "", Questions(asked={"incident__1": [["orders", 1, 49]]})) as url,
            started() as browser,
        ):
            now = int(time.time() * 1000)
            fill(ledger, now, hostile="one digest differs: what west holds is not what east sent")
            fill_many(ledger, now, partitions=1_200, groups=5, flow="south->west")
            for name, (path, width, height) in PAGES.items():
                with watched(browser, viewport={"width": width, "height": height}) as seen:
                    seen.page.goto(f"{url}/airmirror/console/frame{path}")
                    expect(seen.page.locator(".am-old")).to_be_visible(timeout=PATIENCE_MS)
                    if name == "decisions":
                        seen.page.get_by_role("radio", name="Let it pass").check()
                        seen.page.get_by_label("Reason").fill("The station sent its archive again.")
                    seen.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                    seen.page.screenshot(path=into / f"console-{name}.png")


if __name__ == "__main__":
    take(ROOT / "docs" / "images")
