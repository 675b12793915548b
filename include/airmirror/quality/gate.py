"""Judging rows with Great Expectations: which partitions must not pass, and what is only worth a warning.

Great Expectations is loaded when there is something to judge, and never for an empty window.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from airmirror.errors import named
from airmirror.quality.rows import COLUMNS, KEY, MEASURED, NULLABLE, Row, partition_of
from airmirror.quality.suites import LAG, Expectation, Suite, build
from airmirror.quality.verdict import AskedExpectation, Partition, Validation

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """The most lag that is no warning, ``None`` where there is no limit (``window.max.lag.…``)."""

    lag_records: int | None = None
    lag_seconds: float | None = None


def validate(rows: Sequence[Row], suites: Sequence[Suite], *, flow: str, window: str, limits: Limits) -> Validation:
    """Validate every suite of the flow over the rows of its topics.

    An expectation about single rows fails these, one about the whole fails every partition it was asked for, and one that
    can't be evaluated fails as critical: nothing passes in silence.
    """
    if not rows:
        return Validation({}, ())
    # Great Expectations takes no value for a good one.
    failed = {partition_of(row): [f"no value in {', '.join(missing)}"] for row in rows if (missing := _missing(row))}
    warnings: list[str] = _not_measured(rows)
    every: list[AskedExpectation] = []
    context: Any = None
    lag = _lag_suite(limits)
    for suite in [*suites, *([lag] if lag else [])]:
        chosen = [row for row in rows if suite.is_for_topic(str(row["topic"]))]
        if not chosen or not suite.is_for_flow(flow):
            continue
        try:
            context = context or _context()
            results = _validate(context, suite, chosen, window)
        except Exception as error:  # whatever the library raises: what is not judged is held, and judged again
            log.exception("Suite %s of flow %s can't be evaluated.", suite.name, flow)
            for row in chosen:
                reason = f"suite {suite.name} can't be evaluated: {type(error).__name__}: {error}"
                failed.setdefault(partition_of(row), []).append(reason)
            continue
        for expectation, result in results:
            critical = expectation.severity == "critical" or bool(_raised(result))
            asked = AskedExpectation(suite.name, expectation, len(chosen), (), critical)
            if result.success:
                every.append(asked)
                continue
            reasons, reason = _who_and_why(asked, result, chosen)
            every.append(replace(asked, failed=tuple(reasons)))
            if critical:
                for partition, its_reason in reasons.items():
                    failed.setdefault(partition, []).append(f"{its_reason} ({_whose(suite, expectation)})")
            else:
                where = named([f"{topic}-{number}" for topic, number in reasons], 10)
                warnings.append(f"{reason} ({_whose(suite, expectation)}): {where}")
    return Validation({each: tuple(found) for each, found in failed.items()}, tuple(warnings), tuple(every))


def _context() -> Any:
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    for name in ("great_expectations", "great_expectations.data_context.types.base"):  # it tells of its temporary files
        logging.getLogger(name).setLevel(logging.WARNING)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


def _validate(context: Any, suite: Suite, rows: Sequence[Row], run: str) -> list[tuple[Expectation, Any]]:
    """Each expectation of a suite with its result."""
    import great_expectations as gx
    import pandas

    frame = pandas.DataFrame([dict(row) for row in rows], columns=list(COLUMNS))
    frame["error"] = frame["error"].astype(object).where(frame["error"].notna(), None)
    numbered = [build(expectation, number) for number, expectation in enumerate(suite.expectations)]
    built = context.suites.add(gx.ExpectationSuite(name=suite.name, expectations=numbered))
    source = context.data_sources.add_pandas(suite.name)
    batch = source.add_dataframe_asset("partitions").add_batch_definition_whole_dataframe("window")
    validation = context.validation_definitions.add(gx.ValidationDefinition(name=suite.name, data=batch, suite=built))
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(
            name=suite.name,
            validation_definitions=[validation],
            result_format={
                "result_format": "COMPLETE",
                "unexpected_index_column_names": list(KEY),
                "return_unexpected_index_query": False,
            },
        )
    )
    name = gx.RunIdentifier(run_name=run, run_time=datetime.now(UTC))  # without a time the name is read as one
    answer = checkpoint.run(batch_parameters={"dataframe": frame}, run_id=name)
    (result,) = answer.run_results.values()
    # Not found by arguments: Great Expectations leaves defaults out and rewrites conditions.
    by_number = {item.expectation_config.meta["number"]: item for item in result.results}
    return [(expectation, by_number[number]) for number, expectation in enumerate(suite.expectations)]


def _who_and_why(asked: AskedExpectation, result: Any, rows: Sequence[Row]) -> tuple[dict[Partition, str], str]:
    """Which partitions failed, each with what was found in it; and one reason for all of them, with a few of the values."""
    what = asked.text
    if raised := _raised(result):
        reason = f"{what} can't be evaluated: {'; '.join(filter(None, raised))}"
        return {partition_of(row): reason for row in rows}, reason
    indices = result.result.get("unexpected_index_list")
    if not indices:
        reason = f"{what} is not met, observed {result.result.get('observed_value')!r}"
        return {partition_of(row): reason for row in rows}, reason
    bad = {(str(index["topic"]), int(index["partition"])) for index in indices}
    found = {partition_of(row): _text(row, asked.expectation) for row in rows if partition_of(row) in bad}
    reasons = {partition: f"{what} is not met, found {own}" for partition, own in found.items()}
    return reasons, f"{what} is not met, found {', '.join(sorted(set(found.values()))[:3])}"


def _whose(suite: Suite, expectation: Expectation) -> str:
    return f"suite {suite.name}: {expectation.notes}" if expectation.notes else f"suite {suite.name}"


def _missing(row: Row) -> list[str]:
    return [column for column in COLUMNS if column not in NULLABLE and row.get(column) is None]


def _not_measured(rows: Sequence[Row]) -> list[str]:
    """A warning where the target was not read, so that no expectation has anything to say of it."""
    unread = sum(any(row.get(column) is None for column in MEASURED) for row in rows)
    what = f"{' and '.join(MEASURED)} of {unread} partitions"
    return [f"not measured: {what} (window.verify=acks reads nothing back)"] if unread else []


def _text(row: Row, expectation: Expectation) -> str:
    """What a row has in the columns that an expectation asks about."""
    asked = expectation.kwargs
    single = (asked[name] for name in ("column", "column_A", "column_B") if name in asked)
    columns = [*single, *asked.get("column_list", [])]
    return " and ".join(str(row.get(column)) for column in columns)


def _raised(result: Any) -> list[str]:
    """The messages of what an expectation, or one of its metrics, has raised."""
    info = result.exception_info or {}
    items = (item for item in (info, *info.values()) if isinstance(item, dict))
    return [str(item.get("exception_message")) for item in items if item.get("raised_exception")]


def _lag_suite(limits: Limits) -> Suite | None:
    limited = {"lag_records": limits.lag_records, "lag_seconds": limits.lag_seconds}
    expectations = tuple(
        Expectation("expect_column_values_to_be_between", {"column": column, "max_value": most}, "warning")
        for column, most in limited.items()
        if most is not None
    )
    return Suite(LAG, "mirror.properties", expectations) if expectations else None
