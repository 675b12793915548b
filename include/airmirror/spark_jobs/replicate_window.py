"""The job for spark-submit: one window of a flow. The submitter makes the window's id; results are in the mapping topic."""

import sys

from airmirror.on_spark.job import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
