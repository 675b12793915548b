"""``make screenshots``: the console's pictures in docs/images, by the machine's Chromium, of a real stack: two clusters, Spark,
Airflow, a flow whose windows run while records arrive, and a window that the gate does not let pass."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import expect
from rich.console import Console

from airmirror_local.demo.frame import steps
from airmirror_local.records import keep_producing
from airmirror_local.stack import DAG_ID, Stack, running_stack
from support import ROOT
from support.browser import PATIENCE_MS, log_in, started, watched
from support.groups import commit

MORE = """east->west.emit.checkpoints.interval.seconds = 1
east->west.console.records.enabled = true
east->west.console.records.mask = temp_max
west->east.enabled = true
west->east.topics = nothing
"""
GATE = """name: thermometers
topics: ["seattle-temps"]
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: copied, max_value: 100}
    notes: A thermometer never sends more than 100 records a minute. Ask the weather team (weather@example.org).
"""
WINDOWS, SECONDS = 8, 900
DECIDE = "decide.east.west"
WAITS = ("awaiting_input", "deferred")  # states of a task that asks, in Airflow 3.3 and 3.2
PAGES = {
    "overview": ("", 1280, 560),
    "flow": (f"/flow/{DAG_ID}?span=3600000", 1280, 1150),
    "partition": (f"/partition/{DAG_ID}?topic=seattle-temps&partition=0", 1280, 700),
    "record": (f"/record/{DAG_ID}?topic=seattle-weather&partition=0&offset=7", 1280, 800),
    "topics": (f"/topics/{DAG_ID}", 1280, 420),
    "groups": (f"/groups/{DAG_ID}", 1280, 360),
    "decisions": ("/decisions", 1280, 900),
}


def run(stack: Stack, expectations: Path) -> None:
    """Let windows copy what arrives, until the gate holds a partition and asks about it."""
    with stack.configuration.open("a") as file:
        file.write(MORE)
    commit(stack.east, "weather-report", {("seattle-temps", number): 400 for number in range(4)})
    commit(stack.east, "portfolio", {("stocks", number): 200 for number in range(2)})
    with stack.client() as client, keep_producing(stack.east.bootstrap, share=0.9):
        client.unpause(DAG_ID)
        client.wait(lambda: [each["state"] for each in client.runs(DAG_ID)].count("success") >= WINDOWS, SECONDS)
        (expectations / "thermometers.yaml").write_text(GATE)
        client.wait(lambda: client.runs(DECIDE), SECONDS)
        client.pause(DAG_ID)
        incident = client.runs(DECIDE)[0]["dag_run_id"]
        client.wait(lambda: client.tasks(DECIDE, incident)["ask"]["state"] in WAITS, SECONDS)


def take(stack: Stack, into: Path) -> None:
    """Write a picture of each page."""
    with started() as browser:
        for name, (path, width, height) in PAGES.items():
            with watched(browser, viewport={"width": width, "height": height}) as seen:
                log_in(seen.page, stack.airflow.url, stack.airflow.user, stack.airflow.password)
                seen.page.goto(f"{stack.airflow.url}/plugin/airmirror{path}")
                expect(seen.page.locator(".am-old")).to_be_visible(timeout=PATIENCE_MS)
                if name == "decisions":
                    seen.page.get_by_role("radio", name="Let it pass").check()
                    seen.page.get_by_label("Reason").fill("The station sent its archive again.")
                seen.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                seen.page.screenshot(path=into / f"console-{name}.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        expectations = Path(place) / "include" / "expectations"
        expectations.mkdir(parents=True)
        with running_stack(Path(place), schedule="10 s", share=0.9, step=steps(Console())) as running:
            run(running, expectations)
            take(running, ROOT / "docs" / "images")
