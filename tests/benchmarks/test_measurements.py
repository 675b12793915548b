"""The arithmetic of ratios and targets."""

from benchmarks.measurements import (
    ACKS,
    READBACK,
    RELAY_LIMIT,
    TUNED,
    Measurement,
    processor_ratio,
    rate_ratio,
    targets,
)
from benchmarks.mirrormaker import WARM_UP_SECONDS, steady
from benchmarks.report import PROBLEMS, Findings, grids
from benchmarks.sections import OWN, RESULTS, kept, replaced

MEASURED = {
    TUNED: Measurement(1_000, 10.0, 5.0),  # 100 a second, 5 ms of processor time each
    ACKS: Measurement(9_000, 6.0, 3.0),  # 1,500 a second, a third of a ms
    RELAY_LIMIT: Measurement(20_000, 10.0),
}
ONCE = {"some records": {what: [measured] for what, measured in MEASURED.items()}}


def test_rate_is_records_by_seconds_and_ratios_compare_rates() -> None:
    assert rate_ratio(MEASURED, ACKS) == 15
    assert rate_ratio(MEASURED, ACKS, RELAY_LIMIT) == 0.75
    assert rate_ratio(MEASURED, READBACK) is None


def test_processor_ratio_is_by_record_and_none_where_it_was_not_taken() -> None:
    assert processor_ratio(MEASURED, ACKS) == 15
    assert processor_ratio(MEASURED, RELAY_LIMIT) is None


def test_targets_tell_met_missed_and_not_measured() -> None:
    found = {row.what: row.verdict for row in targets({"a": MEASURED}, "a", "b", "c", "d") if row.data == "a"}
    assert list(found.values()) == ["met", "not measured", "met", "not measured", "met"]
    slower = MEASURED | {ACKS: Measurement(9_000, 10.0, 30.0)}
    assert [row.verdict for row in targets({"a": slower}, "a", "b", "c", "d")][:3:2] == ["missed", "missed"]


def test_small_batches_are_judged_by_rate_and_by_processor_time() -> None:
    measured = {TUNED: MEASURED[TUNED], ACKS: Measurement(9_000_000, 10_000.0, 9.0)}  # 900 a second, 1 µs each
    rows = [row for row in targets({"c": measured, "d": measured}, "a", "b", "c", "d") if "acks" in row.what]
    told = [(row.data, row.measured, row.verdict) for row in rows if row.data in "cd"]
    assert told == [("c", 9, "met"), ("c", 1, "missed"), ("d", 9, "met"), ("d", 1, "met")]


def test_steady_rate_leaves_the_warm_up_out() -> None:
    slow = [(float(second), second * 10, second * 2.0) for second in range(WARM_UP_SECONDS)]
    fast = [(float(second), 100 * second, second * 1.0) for second in range(WARM_UP_SECONDS, WARM_UP_SECONDS + 10)]
    assert steady(slow + fast) == Measurement(900, 9.0, 9.0)
    assert steady(slow).records == 10 * (WARM_UP_SECONDS - 1)


def test_tables_show_what_was_measured() -> None:
    shown = "\n".join(grid.markdown() for grid in grids(Findings(runs=ONCE)))
    assert "| some records | Airmirror, acks | 9,000 | 6.0 | 1,500 |  | 15.0 | 333.33 | 15.0 |" in shown


def test_of_several_runs_the_median_counts_and_the_spread_is_told() -> None:
    runs = [Measurement(1_000 * rate, 1.0, 1.0) for rate in (5, 1, 3)]
    found = Findings(runs={"some records": {TUNED: [MEASURED[TUNED]], ACKS: runs}})
    assert found.results["some records"][ACKS] == runs[2]
    assert "| 3,000 | 1.0 | 3,000 | 1,000 – 5,000 of 3 | 30.0 |" in "\n".join(grid.markdown() for grid in grids(found))
    assert Findings(runs={"a": {ACKS: runs[:2]}}).results["a"][ACKS] == runs[1]  # of two the slower one


def test_a_section_is_kept_by_one_bench_and_replaced_by_its_own() -> None:
    results = "# Results\n\n## Rates\n\nrows\n"
    once = replaced(results, "Airflow", "## Airflow\n\nfirst\n")
    assert once == "# Results\n\n## Rates\n\nrows\n\n## Airflow\n\nfirst\n"
    assert replaced(once + "\n## What went wrong\n\n- x\n", "Airflow", "## Airflow\n\nsecond\n") == (
        "# Results\n\n## Rates\n\nrows\n\n## Airflow\n\nsecond\n\n## What went wrong\n\n- x\n"
    )
    both = replaced(once, "Topics", "## Topics\n\nmany\n")
    assert kept(both) == "\n## Airflow\n\nfirst\n\n## Topics\n\nmany\n" and kept(results) == ""


def test_results_have_only_what_programs_write_so_that_no_run_deletes_a_persons_words() -> None:
    everything = Findings(
        runs=ONCE,
        growth_bytes=[(1, 1, 1.0, 1.0)],
        growth_partitions=[(4, 1.0, 1.0)],
        slot_peaks=[("some records", 1.0)],
    )
    written = {grid.title for grid in grids(everything)} | {PROBLEMS} | set(OWN)
    titles = {line.removeprefix("## ") for line in RESULTS.read_text().splitlines() if line.startswith("## ")}
    assert titles <= written, f"put what people write into {RESULTS.with_name('README.md')}"
