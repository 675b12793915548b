"""A real browser: the machine's own Chromium, headless, driven by Playwright, which downloads none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from airmirror.web.console.registration import manifest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 120_000  # for what hangs, not for what a busy machine makes slow


def executable() -> str | None:
    """The machine's Chromium; ``CHROMIUM`` may name another one."""
    return os.environ.get("CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def started() -> Iterator[Browser]:
    """The browser. Skips the test where the machine has none, or where the console is not built."""
    path = executable()
    if path is None:
        pytest.skip("the console's pages need Chromium: apt install chromium")
    if not manifest():
        pytest.skip("the console is not built: make install")
    # A sandbox of its own is refused to root; what is shown is ours.
    arguments = ["--no-proxy-server", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Seen:
    """What a page did: what it asked for, by address, and what went wrong in it."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def foreign(self, url: str) -> list[str]:
        """The requests to other hosts than that of ``url``; what the browser makes by itself (blob:, data:) is none."""
        own = urlsplit(url).netloc
        return [each for each in self.requests if each.startswith("http") and urlsplit(each).netloc != own]


@contextmanager
def watched(browser: Browser, **context: Any) -> Iterator[Seen]:
    """A page of its own in ``browser``; ``context``: its colours, size, time zone."""
    opened = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | context)
    opened.set_default_timeout(PATIENCE_MS)
    seen = Seen(opened.new_page())
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    seen.page.on(
        "console", lambda said: seen.errors.append(said.text) if "Content Security Policy" in said.text else None
    )
    try:
        yield seen
    finally:
        opened.close()


def log_in(page: Page, url: str, user: str, password: str) -> None:
    """Log in to the Airflow at ``url``."""
    page.goto(f"{url}/auth/login")
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", password)
    page.click("button[type=submit]")
    page.wait_for_url(lambda at: "/login" not in at)
