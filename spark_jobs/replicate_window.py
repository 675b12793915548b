"""The job for spark-submit from a checkout: one window of a flow. An installed package has it as airmirror/spark_jobs/."""

import sys

from airmirror.on_spark.job import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
