#!/usr/bin/env bash
# What Kubernetes runs in an executor's pod before it ends it (spark.decommission.enabled): Spark gives this executor no more
# tasks, and the executor ends when it has none. The pod's time to end (30 s) is the limit.
set -euo pipefail
executor=$(pgrep --oldest --exact java)
kill -PWR "$executor"
exec tail --pid "$executor" --sleep-interval 0.2 --follow /dev/null
