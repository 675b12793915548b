"""The DAGs of the evidence in a real Airflow: a flow's report, a comparison, and the button that leads to their pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.report.check import check
from airmirror.report.signing import name_of
from on_airflow.conftest import REPORT_KEY, AirflowFlow
from support.kept import json_of
from support.topics import Record, produce

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]


class Comparison(AirflowFlow):
    """The comparison ``evident``, with what a flow of tests can do."""

    @property
    def dag_id(self) -> str:
        return "compare.evident"


def page(flow: AirflowFlow, run_id: str, task: str) -> tuple[str, Path]:
    """The page that the button *Report* leads to, and its JSON, signed and sound."""
    answer = flow.page(run_id, task, "audit_report")
    assert answer.status_code == 200 and "sandbox" in answer.headers["content-security-policy"]
    fetched, name = flow.under_test.directory / "fetched", answer.url.path.rpartition("/pages/")[2]
    words = ["report", "fetch", str(fetched), "--ledger", f"sqlite:///{flow.under_test.ledger}"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    file = fetched / json_of(name).replace("->", ".")
    assert check(file, name_of(REPORT_KEY.public_key())).wrong == ()
    return answer.text, file


@pytest.mark.flow("evident")
def test_a_flow_is_reported_and_compared_and_the_button_leads_to_the_page(flow: AirflowFlow) -> None:
    for partition in (0, 1):
        produce(flow.east, flow.topic, [Record(b"v%d" % n, b"k%d" % n) for n in range(200)], partition=partition)
    assert flow.first_run()["state"] == "success"
    reports = replace(flow, kind="audit")
    run_id, state = reports.run({"what": "report"})
    assert state == "success", reports.log(run_id, "report")
    text, file = page(reports, run_id, "report")
    assert flow.topic in text and "reports/evident.west" in file.as_posix()

    comparison = Comparison(**vars(flow))
    run_id, state = comparison.run()
    assert state == "success", comparison.log(run_id, "compare")
    text, file = page(comparison, run_id, "compare")
    assert "nothing differs" in text and "compare/evident" in file.as_posix()

    produce(flow.west, f"evident.{flow.topic}", [Record(b"stranger")], partition=1)
    run_id, state = comparison.run()
    assert state == "failed" and f"{flow.topic}-1" in comparison.log(run_id, "compare")
    text, later = page(comparison, run_id, "compare")
    assert "1 of 2 logs differ" in text and later != file
