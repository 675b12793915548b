"""Ten thousand partitions and a thousand groups: how soon pages are there, how they scroll, how fast routes answer."""

from __future__ import annotations

import time

import httpx
import pytest
from playwright.sync_api import Browser, expect

from airmirror.ledger import Ledger
from support.browser import watched
from support.console import add_samples, fill_many, sample
from support.pages import FLOW, open_page

FIRST_CONTENT = """
new MutationObserver((_, watch) => {
  if (!document.querySelector(".am-facts")) return;
  watch.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => (document.documentElement.dataset.first = performance.now())));
}).observe(document, { childList: true, subtree: true });
"""
SINCE_IMPORT = """
document.documentElement.dataset.first -
  performance.getEntriesByType("resource").find((each) => each.name.includes("/static/frame-")).startTime
"""
LONGEST_FRAME = """async () => {
  const boxes = [document.querySelector(".airmirror"), document.scrollingElement];
  const box = boxes.find((each) => each.scrollHeight > each.clientHeight + 100);
  let [longest, before] = [0, performance.now()];
  for (let frame = 0; frame < 120; frame++) {
    box.scrollBy(0, frame < 60 ? 40 : -40);
    await new Promise(requestAnimationFrame);
    const at = performance.now();
    [longest, before] = [Math.max(longest, at - before), at];
  }
  return longest;
}"""
ROUNDS = 5  # of each measurement the best counts: another process may have the machine


def slowness() -> float:
    """How many times its processor time a computation takes: other processes may have the machine."""
    begun, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < 0.5:
        pass
    return (time.perf_counter() - begun) / 0.5


def p95_seconds(address: str) -> float:
    """The 95th percentile of twenty answers in a row."""
    with httpx.Client(trust_env=False, timeout=60) as client:
        times = []
        for _ in range(20):
            begun = time.perf_counter()
            assert client.get(address).status_code == 200
            times.append(time.perf_counter() - begun)
    return sorted(times)[18]


@pytest.mark.long
def test_ten_thousand_partitions_are_shown_soon(browser: Browser, url: str, ledger: Ledger) -> None:
    now = int(time.time() * 1000)
    fill_many(ledger, now, partitions=10_000, groups=1_000)
    add_samples(ledger, "east->west", [sample(now - 3_600_000 + n * 6_000, n) for n in range(600)])
    slow = slowness()
    with watched(browser) as seen:
        page = seen.page
        for path in (FLOW, "groups/replicate.east.west"):
            open_page(page, url, path)
            expect(page.locator("tbody tr").first).to_be_visible()
            assert page.locator("tbody tr").count() <= 200, "rows beyond the first hundred come on demand"
        page.add_init_script(FIRST_CONTENT)
        first, longest = [], []
        for _ in range(ROUNDS):
            open_page(page, url, FLOW)
            expect(page.locator("html[data-first]")).to_be_attached()
            first.append(page.evaluate(SINCE_IMPORT))
            expect(page.locator("canvas.am-canvas")).to_be_visible()
            longest.append(page.evaluate(LONGEST_FRAME))
        expect(page.locator(".am-heat")).to_have_attribute(
            "aria-label", "Map of 10,000 partitions, 3,400 partitions with a lag"
        )
        assert seen.errors == []
    routes = ("overview", "decisions", "flows/{}", "flows/{}/topics", "flows/{}/groups")
    addresses = [f"{url}/airmirror/console/api/{each.format('replicate.east.west')}" for each in routes]
    p95 = {address.rpartition("/")[2]: min(p95_seconds(address) for _ in range(ROUNDS)) for address in addresses}
    slow = max(slow, slowness())
    print(
        f"first content after {first} ms, frames of at most {longest} ms, p95 {p95} s, all at {slow:.1f} times their time"
    )
    assert min(first) <= 800 * slow and min(longest) <= 100 * slow and max(p95.values()) <= 0.3 * slow
