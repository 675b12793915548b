"""What is said of a Spark job that failed."""

from __future__ import annotations

from airmirror.on_spark.execute import reason

# As Spark 4.1 says it of an executor whose Python has no pyarrow.
SAID = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "pyspark.zip/pyspark/sql/pandas/types.py", line 98, in to_arrow_type
    import pyarrow as pa
ModuleNotFoundError: No module named 'pyarrow'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
org.apache.spark.SparkException: Job aborted.
"""


def test_the_reason_is_the_first_line_and_what_python_said() -> None:
    assert reason(SAID).startswith("An exception was thrown from the Python worker.")
    assert reason(SAID).endswith("below. ModuleNotFoundError: No module named 'pyarrow'")
    assert reason("Job 3 cancelled part of cancelled job tags\n") == "Job 3 cancelled part of cancelled job tags"
    assert reason("  \n") == ""
