"""What the test on Kubernetes runs in its pods, as the text of scripts. test_kubernetes.py sees that they fit the code."""

from __future__ import annotations

from support import ROOT

PRODUCE = """
import sys, time
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
topic, (partitions, count, age) = sys.argv[1], map(int, sys.argv[2:])
admin = AdminClient({"bootstrap.servers": "east:9092"})
if topic not in admin.list_topics(timeout=30).topics:
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
producer, stamp = Producer({"bootstrap.servers": "east:9092", "linger.ms": 20}), int((time.time() - age) * 1000)
for number in range(count):
    value = f"{number}:" + "x" * 400
    producer.produce(topic, key=str(number), value=value, partition=number % partitions, timestamp=stamp)
    if number % 10_000 == 0:
        producer.flush()
assert producer.flush(60) == 0
"""

# How far the logs of a topic have come on both sides, of what is committed: markers of transactions count as records do.
ENDS = """
import sys, time
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
east, west = (Consumer({"bootstrap.servers": f"{name}:9092", "group.id": "any"}) for name in ("east", "west"))
def end(consumer, topic):
    found = consumer.list_topics(timeout=30).topics
    numbers = found[topic].partitions if topic in found else ()
    try:
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1] for number in numbers)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:  # it is being created
            raise
        return 0
"""
# The remote topic's end, as soon as it has records, or after some seconds without any.
COPIED = (
    ENDS
    + """
copied, last = 0, time.monotonic() + 10
while not copied and time.monotonic() < last:
    copied = end(west, f"east.{sys.argv[1]}")
print(copied)
"""
)
# Every other second how many records wait, until its output is closed.
WAITING = (
    ENDS
    + """
while True:
    print(max(0, end(east, sys.argv[1]) - end(west, f"east.{sys.argv[1]}")), flush=True)
    time.sleep(2)
"""
)

# A window as Airflow's task begins it, with an Airflow connection. A library's digest that is given stands for another image.
SUBMIT = """
import logging, os, sys
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.tasks import submit
from airmirror.on_airflow.tasks.spark import windows_of
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
window, topic, os.environ["AIRFLOW_CONN_SPARK_HERE"], library = sys.argv[1:]
if library:
    submit.digest = lambda: library
place, only = deployment(), Selection((topic,))
windows = windows_of("spark_here", place, flow="east->west", window=window, selection=only, over_connect=print)
try:
    result = windows.replicate()
except submit.SubmittedWindowFailed as error:
    print("failed for good:", not error.transient)
else:
    print("copied:", result.copied)
"""

# The command's window, whose log says how many slots it takes.
RUN_WINDOW = """
import logging, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout)
logging.getLogger("airmirror.on_spark.windows").setLevel(logging.INFO)
from airmirror.cli.main import app
app(["run-window", "--flow", "east->west", "--spark", "sc://spark-connect:15002"])
"""
# After one that is cut or fails for now comes another one, as in Airflow.
CUT, ENDED = "The window was cut", "ended: "  # what is said of them
AGAIN = f"{ENDED}75"
WINDOWS = f"""
said=$(mktemp)
while true; do
  python -u -c "$0" 2>&1 | tee "$said"
  status=${{PIPESTATUS[0]}}
  echo "{ENDED}$status"
  if [ $status = 75 ]; then continue; fi
  if [ $status = 0 ] && grep -q "{CUT}" "$said"; then continue; fi
  exit $status
done
"""

# The first run that has succeeded: its tasks, and the pages that they lead to.
PAGES = (
    (ROOT / "tests" / "support" / "links.py").read_text()
    + """
import json, sys
with AirflowClient("http://airflow-api-server:8080", "admin", sys.argv[1]) as client:
    runs = [each["dag_run_id"] for each in client.runs(sys.argv[2]) if each["state"] == "success"]
    tasks, shown = client.tasks(sys.argv[2], runs[-1]), links(client, sys.argv[2], runs[-1])
print(json.dumps({"run": runs[-1], "tasks": tasks, "links": shown}))
"""
)
