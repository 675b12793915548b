"""The plan of a seed: the flow's direction and settings, and the faults with their times. The same seed, the same plan."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Literal

Side = Literal["source", "target"]

SPARK_EVERY = 5  # seeds that are a multiple of it run their slots as Spark tasks
MORE_FROM = 101  # seeds from here on know more kinds; those before stay what they were
ALL_FROM = 201  # and from here on every kind
FIRST_AT = 1.5  # seconds, when the first records are under way


@dataclass(frozen=True)
class Fault:
    """``kind`` at ``at`` seconds after the start, for ``seconds`` where it lasts. ``side``, ``node``: what it befalls."""

    at: float
    kind: str
    side: Side = "target"
    node: int = 0
    seconds: float = 0.0
    number: int = 0  # of the request or answer that is lost, counted from the fault on
    api_key: int = 0

    def __str__(self) -> str:
        words = [f"{self.at:5.1f} s  {self.kind}"]
        if self.kind in NODES | PROXIED | ACCESS | STARVED | WITHHELD | DISKS:
            words.append(f"on the {self.side}")
        if self.kind in NODES | DISKS:
            words.append(f"node {self.node + 1}")
        if self.kind in LOSSES:
            words.append(f"{API_NAMES[self.api_key]} number {self.number} from now")
        if self.seconds:
            words.append(f"for {self.seconds:.1f} s")
        return " ".join(words)


API_NAMES = {0: "Produce", 1: "Fetch", 22: "InitProducerId", 26: "EndTxn"}
LOSSES = frozenset({"lose_request", "lose_answer"})
NODES = frozenset({"kill_node", "stop_node", "restart_node", "refuse_writes"})
PROXIED = LOSSES | {"cut", "delay"}
ACCESS = frozenset({"deny_writes"})
WINDOWS = frozenset({"kill_slot", "stop_slot", "kill_window", "stop_window", "second_window"})
SPARK = frozenset({"kill_spark", "kill_worker"})
STATE = frozenset({"delete_progress", "rebuild_ledger", "restore_ledger"})
BETWEEN = frozenset({"delete_mappings"})  # when no window is at work
STARVED = frozenset({"starve", "unlead"})  # a single remote topic
WITHHELD = frozenset({"withhold"})
MOVES = frozenset({"reassign", "transfer", "decommission"})  # replicas and leaders of the cluster of three nodes
APART = frozenset(
    {"isolate_leader", "isolate_follower", "isolate_coordinator"}
)  # one of its nodes, from the two others
IDS = frozenset({"hijack", "forget_producers"})  # of transactions and producers, on the target
DISKS = frozenset({"fill_disk"})  # of a node, which ends by itself
UPGRADES = frozenset({"upgrade"})  # of older nodes: a plan of its own has it
CLOCKS = frozenset({"jump_clock"})  # of the drivers' and the slots' machine


@dataclass(frozen=True)
class Plan:
    """``three``: which side is the cluster of three nodes; the other one is a single node behind a proxy."""

    seed: int
    seconds: float
    three: Side
    spark: bool
    slots: int
    settings: dict[str, str]
    tuning: dict[str, float]
    ends_dead_windows: bool  # whether a killed window is ended from outside, as Airflow's retry does, or by its lease
    faults: tuple[Fault, ...] = field(default=())
    bulk: bool = False  # whether one more producer writes large transactions and aborts them, the last one at the end
    taken_over: bool = False  # whether MirrorMaker 2 has copied the beginning, and died before it wrote its progress
    fragile: bool = False  # whether a remote topic has one replica only, on the node that `unlead` kills
    first_protocol: bool = False  # whether the single node knows the first protocol of transactions only
    in_turn: bool = False  # whether each fault waits until the one before it is over
    pause: float = 0.05  # of the producers, in seconds

    def __str__(self) -> str:
        flow = "three nodes -> one node" if self.three == "source" else "one node -> three nodes"
        flow += "".join(f", {name.replace('_', ' ')}" for name in FLAGS if getattr(self, name))
        how = "Spark Connect" if self.spark else f"{self.slots} slots in processes"
        settings = ", ".join(f"{key}={value}" for key, value in {**self.settings, **self.tuning}.items())
        lines = [f"seed {self.seed}: {flow}, {how}, {self.seconds:g} s, {settings}"]
        return "\n".join(lines + [f"  {fault}" for fault in self.faults])


FLAGS = ("bulk", "taken_over", "fragile", "first_protocol")


def make_plan(seed: int, seconds: float = 20.0) -> Plan:
    """The plan of a seed. ``seconds``: how long records are produced and faults begin."""
    chance = random.Random(f"airmirror {seed}")
    three: Side = "target" if seed % 2 else "source"
    spark = seed % SPARK_EVERY == 0
    timeout = chance.choice([4000, 10_000])
    settings = {
        "window.commit.bytes": str(chance.choice([10_000, 50_000, 1_000_000])),
        "window.max.ms": str(chance.choice([2000, 8000])),
        "window.verify": chance.choice(["readback", "readback", "readback", "acks"]),
        "producer.transaction.timeout.ms": str(timeout),
    }
    tuning = {
        "fetch_bytes": chance.choice([8 << 10, 64 << 10, 4 << 20]),
        "answer_seconds": chance.choice([2.0, 30.0]),
    }
    kinds = _kinds(three, spark)
    more: dict[str, bool] = {}
    if seed >= MORE_FROM:
        kinds += _more_kinds(three)
        tuning |= {"driver_skew": chance.choice([0.0, -600.0, 600.0]), "slot_skew": chance.choice([0.0, -600.0, 600.0])}
        more = {name: chance.random() < 0.4 for name in FLAGS}
        more["fragile"] = more["fragile"] and three == "target"
        more["first_protocol"] = more["first_protocol"] and three == "source"
    if seed >= ALL_FROM:
        kinds += sorted(MOVES | APART | IDS | DISKS | CLOCKS) * 2
    faults = []
    at = FIRST_AT
    while at < seconds:
        faults.append(_fault(chance, at, chance.choice(kinds), three, timeout / 1000))
        at += chance.uniform(0.2, 2.2)
    return Plan(
        seed=seed,
        seconds=seconds,
        three=three,
        spark=spark,
        slots=chance.randint(1, 3),
        settings=settings,
        tuning=tuning,
        ends_dead_windows=chance.random() < 0.5,
        faults=tuple(faults),
        **more,
    )


def directed() -> dict[str, Plan]:
    """Short plans with the faults that seeds up to 100 do not know, a few of one sort in each."""
    timeout = {"producer.transaction.timeout.ms": "4000", "window.commit.bytes": "50000", "window.max.ms": "8000"}
    calm = {"fetch_bytes": 64 << 10, "answer_seconds": 2.0}

    def plan(
        seconds: float, three: Side, faults: list[Fault], tuning: dict[str, float] | None = None, **flags: bool
    ) -> Plan:
        return Plan(
            seed=0,
            seconds=seconds,
            three=three,
            spark=False,
            slots=2,
            settings=timeout,
            tuning=calm | (tuning or {}),
            ends_dead_windows=True,
            faults=tuple(faults),
            **flags,
        )

    return {
        "state": plan(
            6.0,
            "source",
            [
                Fault(1.0, "restore_ledger", seconds=2.0),
                Fault(1.5, "delete_progress"),
                Fault(2.0, "kill_window"),
                Fault(3.5, "rebuild_ledger", seconds=2.0),
            ],
        ),
        "mappings": plan(4.0, "source", [Fault(1.0, "kill_window"), Fault(2.0, "delete_mappings")]),
        "partitions": plan(
            7.0, "target", [Fault(1.0, "starve", seconds=2.0), Fault(3.5, "unlead", seconds=2.5)], fragile=True
        ),
        "withheld": plan(
            5.0,
            "target",
            [Fault(1.0, "withhold", "source", seconds=2.0), Fault(3.5, "kill_slot")],
            {"driver_skew": 600.0},
            bulk=True,
        ),
        "taken over": plan(4.0, "target", [Fault(1.0, "kill_window")], {"slot_skew": -600.0}, taken_over=True),
        "first protocol": plan(
            6.0,
            "source",
            [
                Fault(1.0, "kill_slot"),
                Fault(1.5, "lose_answer", number=1, api_key=26),
                Fault(2.5, "kill_window"),
                Fault(3.0, "deny_writes", seconds=1.5),
            ],
            {"slot_skew": 600.0},
            first_protocol=True,
        ),
    }


def each_kind() -> dict[str, Plan]:
    """Short plans in which every kind, save those of Spark, happens alone, two for each direction."""

    def plan(three: Side, faults: list[Fault], **flags: bool) -> Plan:
        return Plan(
            seed=0,
            seconds=2.0,
            three=three,
            spark=False,
            slots=2,
            settings={
                "producer.transaction.timeout.ms": "4000",
                "window.commit.bytes": "50000",
                "window.max.ms": "4000",
            },
            tuning={"fetch_bytes": 64 << 10, "answer_seconds": 2.0},
            ends_dead_windows=True,
            faults=tuple(faults),
            in_turn=True,
            pause=0.5,
            **flags,
        )

    def unread(plan: Plan) -> Plan:
        """With acknowledgements alone between what leaders say and what is committed, and much to be written at any time."""
        return replace(plan, settings=plan.settings | {"window.verify": "acks"}, pause=0.05)

    to_one = [  # both positions are never gone at once: windows write the progress again before the mappings go
        Fault(1.0, "delete_progress"),
        Fault(1.0, "lose_request", number=2, api_key=0),
        Fault(1.0, "lose_answer", number=1, api_key=26),
        Fault(1.0, "cut"),
        Fault(1.0, "delay", seconds=0.5),
        Fault(1.0, "stop_slot", seconds=0.5),
        Fault(1.0, "kill_slot"),
        Fault(1.0, "second_window"),
        Fault(1.0, "stop_window", seconds=0.5),
        Fault(1.0, "restore_ledger", seconds=0.5),
        Fault(1.0, "kill_window"),
        Fault(1.0, "rebuild_ledger", seconds=0.5),
        Fault(1.0, "deny_writes", seconds=0.5),
        Fault(1.0, "stop_node", seconds=0.5),
        Fault(1.0, "kill_node", seconds=0.2),
        Fault(1.0, "restart_node", seconds=0.2),
        Fault(1.0, "delete_mappings"),
    ]
    to_three = [
        Fault(1.0, "withhold", "source", seconds=1.0),
        Fault(1.0, "refuse_writes", seconds=1.0),
        Fault(1.0, "starve", node=1, seconds=1.0),
        Fault(1.0, "unlead", seconds=1.0),
    ]
    within_three = [
        Fault(1.0, "transfer", seconds=0.5),
        Fault(1.0, "hijack", seconds=0.5),
        Fault(1.0, "reassign", seconds=0.5),
        Fault(1.0, "isolate_follower", seconds=4.0),
        Fault(1.0, "forget_producers", seconds=1.0),
        Fault(1.0, "isolate_leader", seconds=6.0),
        Fault(1.0, "decommission", node=2, seconds=1.0),
        Fault(1.0, "isolate_coordinator", seconds=6.0),
        Fault(1.0, "fill_disk", "target", node=1, seconds=0.5),
        Fault(1.0, "jump_clock", seconds=1.0),
    ]
    from_three = [
        Fault(1.0, "transfer", seconds=0.5),
        Fault(1.0, "reassign", seconds=0.5),
        Fault(1.0, "isolate_leader", seconds=6.0),
        Fault(1.0, "decommission", node=1, seconds=1.0),
        Fault(1.0, "fill_disk", "target", seconds=0.5),
        Fault(1.0, "hijack", seconds=0.5),
    ]
    return {
        "to one node": plan("source", to_one),
        "to three nodes": plan("target", to_three, fragile=True),
        "within three nodes": unread(plan("target", within_three)),
        "from three nodes": plan("source", from_three),
    }


FEW = {"lose_answer", "kill_window"}


def few_kinds() -> Plan:
    """The plan to one node with a fault of the connections and one of the processes: what is found of all others without it."""
    whole = each_kind()["to one node"]
    return replace(whole, faults=tuple(fault for fault in whole.faults if fault.kind in FEW))


def upgrading() -> Plan:
    """The plan of a rolling upgrade of the target's nodes, for clusters that were started with an older version."""
    return replace(each_kind()["within three nodes"], faults=(Fault(1.0, "upgrade"),))


def _kinds(three: Side, spark: bool) -> list[str]:
    windows = ["kill_slot", "kill_slot", "stop_slot", "kill_window", "kill_window", "stop_window", "second_window"]
    if spark:
        windows = ["kill_spark", "kill_worker", "kill_worker", "kill_window", "second_window"]
    nodes = ["kill_node", "kill_node", "stop_node", "stop_node", "restart_node"]
    refusing = ["refuse_writes"] if three == "target" else ["deny_writes"]
    return [*windows, *nodes, *refusing, "cut", "delay", "lose_request", "lose_answer", "lose_answer"]


def _more_kinds(three: Side) -> list[str]:
    """What the reviews have found: the target's topics and the ledger, single partitions, answers without records."""
    alone = (
        ["starve", "starve", "unlead"] if three == "target" else []
    )  # Kafka 4 asks one replica for no more than itself
    return [*sorted(STATE | BETWEEN), "withhold", "withhold", *alone]


def _fault(chance: random.Random, at: float, kind: str, three: Side, timeout: float) -> Fault:
    single: Side = "target" if three == "source" else "source"
    at = round(at, 1)
    if kind in ("kill_node", "restart_node"):
        side = three if kind == "restart_node" else chance.choice([single, three])
        return Fault(at, kind, side, chance.randrange(3) if side == three else 0, round(chance.uniform(0.2, 3.0), 1))
    if kind == "stop_node":
        side = chance.choice([single, three])
        longer = timeout + 1.5 if timeout < 5 and chance.random() < 0.5 else chance.uniform(0.5, 3.0)
        return Fault(at, kind, side, chance.randrange(3) if side == three else 0, round(longer, 1))
    if kind == "refuse_writes":
        return Fault(at, kind, three, chance.randrange(3), round(chance.uniform(3.5, 6.0), 1))
    if kind in ("starve", "unlead"):
        return Fault(at, kind, "target", 0, round(chance.uniform(0.5, 4.0), 1))
    if kind == "withhold":
        return Fault(at, kind, single, 0, round(chance.uniform(0.5, 4.0), 1))
    if kind in MOVES | APART:
        longer = kind in APART and chance.random() < 0.5
        seconds = chance.uniform(4.0, 8.0) if longer else chance.uniform(0.2, 3.0)
        return Fault(at, kind, three, chance.randrange(3), round(seconds, 1))
    if kind in IDS | CLOCKS:
        return Fault(at, kind, "target", seconds=round(chance.uniform(0.2, 3.0), 1))
    if kind in DISKS:
        side = chance.choice([single, three])
        return Fault(at, kind, side, chance.randrange(3) if side == three else 0, round(chance.uniform(0.2, 2.0), 1))
    if kind in ("rebuild_ledger", "restore_ledger"):
        return Fault(at, kind, seconds=round(chance.uniform(0.5, 3.0), 1))
    if kind == "deny_writes":
        return Fault(at, kind, single, 0, round(chance.uniform(0.5, 2.0), 1))
    if kind in LOSSES:
        keys = [0, 0, 22, 26, 26] if single == "target" else [1]
        return Fault(at, kind, single, number=chance.randint(1, 8), api_key=chance.choice(keys))
    if kind == "delay":
        return Fault(at, kind, single, seconds=round(chance.uniform(1.0, 3.0), 1))
    if kind == "cut":
        return Fault(at, kind, single)
    if kind in ("stop_slot", "stop_window"):
        return Fault(at, kind, seconds=round(chance.uniform(0.5, 6.0), 1))
    return Fault(at, kind)
