"""Transactions by hand: InitProducerId, AddPartitionsToTxn and EndTxn for the hot path.

A new attempt never reuses a producer id and epoch (invariants B and C): after an abort, a lost answer or an unknown end
of a transaction only ``TransactionalId.initialise`` decides, which fences every earlier producer of the id and waits
until the end of its transaction is written everywhere.

One protocol for a whole transaction: the second (TV2) where the cluster has finalised ``transaction.version`` 2, else
the first (TV1), which announces every partition with AddPartitionsToTxn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from kafka.protocol.admin.transactions import DescribeTransactionsRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from airmirror.clusters.protocol.connection import BrokerUnreachable, Connection, UnsupportedBroker
from airmirror.clusters.protocol.errors import UNKNOWN_SERVER_ERROR, error_name
from airmirror.clusters.protocol.routes import TOPIC_DENIED, CoordinatorNotAvailable, Routes, patiently
from airmirror.clusters.protocol.waiting import Look, ready
from airmirror.clusters.protocol.writable import unwritable
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition, grouped

ANSWER_SECONDS = 30.0  # and as long again, without a look
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN, DESCRIBE_TRANSACTIONS = 22, 24, 26, 65

COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, INVALID_TRANSACTION_TIMEOUT, CONCURRENT_TRANSACTIONS = 47, 48, 50, 51
TRANSACTIONAL_ID_DENIED, PRODUCER_FENCED = 53, 90
FENCED = frozenset({INVALID_PRODUCER_EPOCH, PRODUCER_FENCED})
_COORDINATOR_MOVED = frozenset({COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
_UNKNOWN_PARTITION, _NOT_ATTEMPTED = 3, 55
ABORTING, COMMITTING = "PrepareAbort", "PrepareCommit"  # the states of a transaction whose end is being written


class TransactionBusy(AirmirrorError, transient=True):
    """The end of an earlier transaction of this id is not written everywhere yet."""

    says = "cluster {0.cluster!r}: an earlier transaction of {0.transactional_id!r} is still being ended"
    cluster: str
    transactional_id: str


class TransactionStuck(AirmirrorError, transient=True):
    """The end of this id's last transaction is decided, but some of its partitions do not take the marker.

    ``reasons``: what is wrong with each of them; the marker is in all its other partitions. Until it is in these too, the
    coordinator lets nothing be added to another transaction of the id.
    """

    cluster: str
    transactional_id: str
    aborted: bool
    reasons: Mapping[TopicPartition, str]

    def __str__(self) -> str:
        where = "; ".join(f"{partition}: {reason}" for partition, reason in self.reasons.items())
        return (
            f"cluster {self.cluster!r}: the end of the last transaction of {self.transactional_id!r} "
            f"({'aborted' if self.aborted else 'committed'}) can't be written to {where}"
        )


class PartitionsRefused(AirmirrorError):
    """Partitions that may not be part of a transaction, with Kafka's error code; none of those asked for is."""

    cluster: str
    codes: Mapping[TopicPartition, int]

    def __str__(self) -> str:
        found = "; ".join(f"{partition}: {error_name(code)}" for partition, code in self.codes.items())
        return f"cluster {self.cluster!r} could not add partitions to a transaction: {found}"


class ProducerFenced(AirmirrorError):
    """Another producer has initialised this transactional id since."""

    says = "cluster {0.cluster!r}: transactional id {0.transactional_id!r} was taken over by a later producer"
    transient: ClassVar[bool] = True  # the lease decides whether to continue, not this

    cluster: str
    transactional_id: str


class TransactionFailed(AirmirrorError, transient=True):
    """A transaction that can't continue; what it wrote is aborted, and a new attempt may succeed."""

    says = "cluster {0.cluster!r}: {0.request} of transactional id {0.transactional_id!r} failed: {0.error}"
    cluster: str
    transactional_id: str
    request: str
    error: str


class TransactionUnclear(TransactionFailed, transient=True):
    """The coordinator stumbled over the request; asked again, it says what is so.

    Kafka 4.2 does where an EndTxn of the second protocol meets another producer's InitProducerId: an IllegalStateException.
    """


class TransactionRefused(AirmirrorError):
    """The cluster does not let this user write under the transactional id, or not for so long."""

    says = "cluster {0.cluster!r} refuses transactional id {0.transactional_id!r}: {0.error}; {0.way_out}"
    cluster: str
    transactional_id: str
    error: str
    way_out: str


class TransactionalId:
    """A transactional id and the producer it now has. Not thread-safe.

    ``until``: nothing is asked again after it, by ``time.monotonic``. ``look``: called every second while an answer is awaited
    for long.
    """

    look: Look = staticmethod(lambda: None)

    def __init__(self, routes: Routes, name: str, timeout_ms: int, until: float = math.inf) -> None:
        self.until = until
        self.routes = routes
        self.name = name
        self.timeout_ms = timeout_ms
        self.producer_id = -1
        self.epoch = -1
        self.second_protocol = False
        self._coordinator = -1
        self._partitions: set[TopicPartition] = set()

    @property
    def seconds_left(self) -> float:
        """The time for which the target may still be awaited."""
        return max(0.0, self.until - time.monotonic())

    def initialise(self, patience: float = 60.0) -> None:
        """Fence every earlier producer of the id, wait for the end of its transaction, take a new producer id and epoch.

        Raises TransactionStuck as soon as it is known that the end can't be written; TransactionBusy,
        CoordinatorNotAvailable or BrokerUnreachable after ``patience`` seconds; TransactionRefused.
        """
        try:
            for attempt in patiently(
                min(self.seconds_left, patience), TransactionBusy, CoordinatorNotAvailable, BrokerUnreachable
            ):
                with attempt:
                    try:
                        self._initialise()
                    except TransactionBusy:
                        self._raise_if_stuck(certain=True)
                        raise
        except TransactionBusy:
            self._raise_if_stuck(certain=False)
            raise

    def _raise_if_stuck(self, certain: bool) -> None:
        """Raise TransactionStuck where the end of the last transaction is decided and partitions lack its marker.

        ``certain``: only where metadata tell of each of them why it takes none; else it may be on its way.
        """
        try:
            state, partitions = self._describe()
        except (BrokerUnreachable, CoordinatorNotAvailable, UnsupportedBroker):  # DescribeTransactions: Kafka 3.0
            return
        if state not in (ABORTING, COMMITTING) or not partitions:
            return
        missing = self.routes.refresh_existing({partition.topic for partition in partitions})
        there = [partition for partition in partitions if partition.topic not in missing]
        reasons = unwritable(self.routes, there)
        if certain and len(reasons) < len(partitions):
            return
        unknown = "its broker does not take it"
        reasons = {partition: reasons.get(partition, unknown) for partition in partitions}
        raise TransactionStuck(self.routes.alias, self.name, state == ABORTING, reasons)

    def _describe(self) -> tuple[str, list[TopicPartition]]:
        """The state of the id's last transaction, and the partitions in which its end is not written yet."""
        connection = self._connection()
        version = connection.version(DESCRIBE_TRANSACTIONS, 0, 0, "DescribeTransactions")
        answer = self._ask(DescribeTransactionsRequest(transactional_ids=[self.name]), version)
        [found] = answer.transaction_states
        partitions = [TopicPartition(topic.topic, number) for topic in found.topics for number in topic.partitions]
        return found.transaction_state, sorted(partitions)

    def _initialise(self) -> None:
        connection = self._connection()
        version = connection.version(INIT_PRODUCER_ID, 2, 5, "InitProducerId")
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=self.timeout_ms, producer_id=-1, producer_epoch=-1
        )
        answer = self._ask(request, version)
        self._check("InitProducerId", answer.error_code)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._partitions.clear()
        connection = self._connection()
        self.second_protocol = (
            connection.features.get("transaction.version", 0) >= 2 and connection.version(END_TXN, 0, 5, "EndTxn") >= 5
        )

    def add(self, partitions: Collection[TopicPartition]) -> None:
        """Announce the partitions that the transaction writes to (TV1; under TV2 the broker notices by itself).

        Raises PartitionsRefused, TopicNotFound, TransactionFailed; TransactionBusy or CoordinatorNotAvailable after half
        the transaction's time.
        """
        self._partitions.update(new := set(partitions) - self._partitions)
        if self.second_protocol or not new:
            return
        entry = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        for attempt in patiently(
            min(self.seconds_left, self.timeout_ms / 2000), TransactionBusy, CoordinatorNotAvailable
        ):
            with attempt:
                connection = self._connection()
                request = AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=self.name,
                    v3_and_below_producer_id=self.producer_id,
                    v3_and_below_producer_epoch=self.epoch,
                    v3_and_below_topics=[
                        entry(name=name, partitions=numbers) for name, numbers in grouped(new).items()
                    ],
                )
                answer = self._ask(request, connection.version(ADD_PARTITIONS_TO_TXN, 1, 3, "AddPartitionsToTxn"))
                codes = {
                    TopicPartition(topic.name, result.partition_index): result.partition_error_code
                    for topic in answer.results_by_topic_v3_and_below
                    for result in topic.results_by_partition
                }
                self._check_added(codes)

    def _check_added(self, codes: Mapping[TopicPartition, int]) -> None:
        """One partition that is refused keeps all out: those that are not to blame have OPERATION_NOT_ATTEMPTED."""
        denied = {partition: code for partition, code in codes.items() if code == TOPIC_DENIED}
        if denied:
            raise PartitionsRefused(self.routes.alias, denied)
        unknown = {partition.topic for partition, code in codes.items() if code == _UNKNOWN_PARTITION}
        if unknown:
            self.routes.refresh(unknown)
        for code in sorted(codes.values(), key=lambda code: code == _NOT_ATTEMPTED):
            self._check("AddPartitionsToTxn", code)

    def end(self, commit: bool) -> None:
        """Commit or abort. Nothing is sent for a transaction that wrote nothing.

        Raises TransactionBusy, TransactionUnclear or CoordinatorNotAvailable after half the transaction's time;
        ProducerFenced where it was aborted before, by a later producer's fence or its time-out. A lost answer leaves the
        outcome unknown: BrokerUnreachable, and only a new ``initialise`` tells. So does a coordinator that has moved, where it is
        fenced then: CoordinatorNotAvailable.
        """
        if not self._partitions:
            return
        patience = min(self.seconds_left, self.timeout_ms / 2000)
        moved: CoordinatorNotAvailable | None = None  # it may have written the end all the same
        try:
            for attempt in patiently(patience, TransactionBusy, TransactionUnclear, CoordinatorNotAvailable):
                with attempt:
                    try:
                        self._end(commit)
                    except CoordinatorNotAvailable as error:
                        moved = error
                        raise
        except ProducerFenced as fenced:
            raise moved or fenced from None
        self._partitions.clear()

    def _end(self, commit: bool) -> None:
        connection = self._connection()
        version = 5 if self.second_protocol else connection.version(END_TXN, 1, 4, "EndTxn")
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = self._ask(request, version)
        # TV2: an abort raises the epoch, so that this request looks like one of before it that is sent again.
        ended = answer.error_code == INVALID_TXN_STATE and self.second_protocol
        self._check("EndTxn", PRODUCER_FENCED if ended else answer.error_code)
        if version >= 5:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def _connection(self) -> Connection:
        if self._coordinator < 0:
            try:
                self._coordinator = self.routes.coordinator(self.name)
            except CoordinatorNotAvailable as error:
                if error.error == TRANSACTIONAL_ID_DENIED:
                    self._check("FindCoordinator", error.error)
                raise
        return self.routes.connection(self._coordinator, "transactions")

    def _ask(self, request: Any, version: int) -> Any:
        try:
            return self._connection().request(request, version, lambda asked: ready([asked], ANSWER_SECONDS, self.look))
        except AirmirrorError:  # its answer may come yet, and is no other request's
            self.routes.drop(self._coordinator, "transactions")
            self._coordinator = -1
            raise

    def _check(self, request: str, error: int) -> None:
        if error == 0:
            return
        if error in (CONCURRENT_TRANSACTIONS, _UNKNOWN_PARTITION):  # 3: a topic that was made a moment ago
            raise TransactionBusy(self.routes.alias, self.name)
        if error in _COORDINATOR_MOVED:
            self._coordinator = -1
            raise CoordinatorNotAvailable(self.routes.alias, self.name, error, error_name(error))
        if error in FENCED:
            raise ProducerFenced(self.routes.alias, self.name)
        if error == TRANSACTIONAL_ID_DENIED:
            prefix = self.name.rpartition(".")[0] + "."  # of all ids of the flow, as an ACL names it
            way_out = f"give this user Write and Describe on the transactional ids with prefix {prefix!r}"
            raise TransactionRefused(self.routes.alias, self.name, error_name(error), way_out)
        if error == INVALID_TRANSACTION_TIMEOUT:
            way_out = (
                f"{self.timeout_ms} ms were asked for: raise transaction.max.timeout.ms of its brokers to that, or set "
                f"{self.routes.alias}.producer.transaction.timeout.ms to what they allow"
            )
            raise TransactionRefused(self.routes.alias, self.name, error_name(error), way_out)
        failed = TransactionUnclear if error == UNKNOWN_SERVER_ERROR else TransactionFailed
        raise failed(self.routes.alias, self.name, request, error_name(error))
