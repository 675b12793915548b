#!/usr/bin/env bash
# What Spark starts in its pods, by the interface of Spark's own images: `driver …`, `executor …`. Anything else runs as it is.
set -euo pipefail
case "${1:-}" in
driver)
  set -- spark-submit --deploy-mode client --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
    --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" "${@:2}"
  ;;
executor)
  SPARK_HOME=$(python3 "$(command -v find_spark_home.py)")
  options=()
  for ((i = 0; ; i++)); do # SPARK_JAVA_OPT_0, …: a Java option each
    option=SPARK_JAVA_OPT_$i
    [ -n "${!option:-}" ] || break
    options+=("${!option}")
  done
  set -- java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:${SPARK_CLASSPATH:-}:$SPARK_HOME/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
  ;;
esac
exec tini -- "$@"
