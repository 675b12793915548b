#!/usr/bin/env bash
# What is secret among Spark's settings, from the environment into a file of this container alone; then the command.
set -euo pipefail
umask 077
export SPARK_CONF_DIR=/var/lib/spark/conf
mkdir -p "$SPARK_CONF_DIR"
cat > "$SPARK_CONF_DIR/spark-defaults.conf" <<END
spark.authenticate true
spark.authenticate.secret $SPARK_AUTHENTICATE_SECRET
spark.network.crypto.enabled true
spark.io.encryption.enabled true
END
unset SPARK_AUTHENTICATE_SECRET
exec "$@"
