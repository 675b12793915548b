"""A real query of Spark Structured Streaming on Spark's own Kafka source, in a process of its own: until it has read all.

``python -m support.spark_query BOOTSTRAP TOPIC CHECKPOINT OUT JARS`` appends what it reads to the files in OUT.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(bootstrap: str, topic: str, checkpoint: str, out: str, jars: str) -> None:
    """Read seven records a batch, so that there are several."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")  # type: ignore[attr-defined]
    builder = builder.config("spark.jars", ",".join(map(str, Path(jars).iterdir())))
    session = (
        builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
        "maxOffsetsPerTrigger": "7",
    }
    records = session.readStream.format("kafka").options(**options).load()
    values = records.selectExpr("topic", "partition", "offset", "CAST(value AS STRING) value")
    writer = values.writeStream.format("json").option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.start(out).awaitTermination()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
