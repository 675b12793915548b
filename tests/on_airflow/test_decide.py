"""An operator decides what the gate holds: one question an incident, and the answer is carried out."""

from __future__ import annotations

import pytest

from airmirror.ledger import Ledger
from airmirror.wire.mappings import Action
from on_airflow.conftest import AirflowFlow
from support.topics import Record, produce

GATE = """
name: at-most-ten-of-decided
flows: ["decided->west"]
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: copied, max_value: 10}
"""

pytestmark = pytest.mark.timeout(1200)


def records(count: int, start: int = 0) -> list[Record]:
    return [Record(b"value-%d" % n, b"key-%d" % n) for n in range(start, start + count)]


def answer(flow: AirflowFlow, dag_id: str, run_id: str, option: str, reason: str) -> None:
    """Answers as soon as the question is there."""
    question = flow.answer(dag_id, run_id, "ask", option, reason=reason)
    assert "decided-orders" in question["body"] and "1 partition was not let through" in question["subject"]


@pytest.mark.long
@pytest.mark.flow("decided")
def test_an_incident_is_decided_by_somebody(flow: AirflowFlow) -> None:
    dag_id = f"decide.{flow.source}.{flow.target}"
    suite = flow.under_test.expectations / "decided.yaml"
    suite.write_text(GATE)
    try:
        produce(flow.east, flow.topic, records(50), partition=0)
        produce(flow.east, flow.topic, records(5), partition=1)
        first = flow.first_run()
        assert first["state"] == "failed" and flow.states(first["dag_run_id"])["ask_to_decide"] == "success"
        (incident,) = flow.client.runs(dag_id)
        run_id = incident["dag_run_id"]
        assert [item[:2] for item in incident["conf"]["held"]] == [["decided-orders", 0]]
        second, state = flow.run()  # judged again, held again: the same incident
        assert state == "failed" and flow.states(second)["ask_to_decide"] == "skipped"
        assert [run["dag_run_id"] for run in flow.client.runs(dag_id)] == [run_id]
        answer(flow, dag_id, run_id, "Verify again", "is it so?")  # nothing was mended
        assert flow.client.wait_for_run(dag_id, run_id) == "failed"
        log = flow.client.log(dag_id, run_id, "carry_out")
        assert "as admin wants it: is it so?" in log and "still held by the gate" in log
        assert flow.verified() == 1
        third, state = flow.run()
        assert state == "failed" and flow.states(third)["ask_to_decide"] == "success", (
            "the incident is asked about anew"
        )
        run_id = flow.client.runs(dag_id)[0]["dag_run_id"]  # in a run of its own: a decision has failed since
        assert run_id != incident["dag_run_id"]
        answer(flow, dag_id, run_id, "Verify again", "and now?")
        assert flow.client.wait_for_run(dag_id, run_id) == "failed"
        flow.client.clear(dag_id, run_id, "ask")  # whoever does not wait for the next window
        answer(flow, dag_id, run_id, "Accept the loss", "a load of history, see OPS-7")
        attempt = flow.client.tasks(dag_id, run_id)["carry_out"]["try_number"]
        ended = flow.client.wait_for_run(dag_id, run_id)
        assert ended == "success", flow.client.log(dag_id, run_id, "carry_out", attempt)
        assert flow.verified() == 2
        _, state = flow.run()
        assert state == "success" and flow.assert_equal() == 55
        ledger = Ledger(f"sqlite:///{flow.under_test.ledger}")
        decided = [(each.action, each.by, each.reason) for each in ledger.flow("decided->west").decisions()]
        ledger.close()
        assert decided == [
            (Action.VERIFY_AGAIN, "admin", "is it so?"),
            (Action.VERIFY_AGAIN, "admin", "and now?"),
            (Action.ACCEPT_LOSS, "admin", "a load of history, see OPS-7"),
        ]
    finally:
        suite.unlink()
