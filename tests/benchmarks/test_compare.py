"""The copies that `make bench ONLY=compare` plants, and its targets."""

import pytest
from benchmarks.compare import ALTERED, EQUAL, OWN, Compared, every, targets
from benchmarks.measurements import Measurement


def test_batches_of_a_million_records_are_chosen_evenly() -> None:
    is_chosen = every(10_000_000)
    chosen = [is_chosen(1_000) for _ in range(10_000)]
    assert sum(chosen) == 1_000 and all(
        900 <= 10 * sum(chosen[at : at + 1_000]) <= 1_100 for at in range(0, 10_000, 1_000)
    )


@pytest.mark.parametrize(("seconds", "peak", "sent"), [(3.0, 200 << 20, 100), (4.0, 300 << 20, 200)])
def test_targets_of_a_comparison(seconds: float, peak: int, sent: int) -> None:
    def compared(of: int) -> Compared:
        return Compared(Measurement(10, 9.0, seconds), peak, of, of, {}, [])

    found = {EQUAL: compared(100), ALTERED: compared(sent), OWN: compared(900)}
    is_met = seconds == 3.0
    assert [row.verdict for row in targets(found, Measurement(10, 9.0, 2.0))] == ["met" if is_met else "missed"] * 3
