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
# A worker is on two networks, and would give an address by chance: it gives the one from which it reaches the master, which the
# driver reaches too. (SPARK_LOCAL_IP would bind its page to that address, away from the health check.)
SPARK_LOCAL_HOSTNAME=$(python3 -c '
import socket
probe = socket.socket(type=socket.SOCK_DGRAM)
probe.connect(("spark-master", 7077))  # sends nothing
print(probe.getsockname()[0])
')
export SPARK_LOCAL_HOSTNAME
exec "$@"
