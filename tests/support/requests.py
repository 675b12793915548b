"""The kinds of requests that pass a proxy, and those that only ask."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from airmirror_local.proxy import Exchange

# Fetch, ListOffsets, Metadata, OffsetFetch, FindCoordinator, DescribeGroups, ListGroups, ApiVersions, OffsetForLeaderEpoch,
# DescribeAcls, DescribeConfigs, DescribeLogDirs, DescribeClientQuotas, DescribeUserScramCredentials, DescribeProducers,
# DescribeTransactions, ListTransactions, ConsumerGroupDescribe, DescribeCluster, DescribeTopicPartitions
ASKING = frozenset({1, 2, 3, 9, 10, 15, 16, 18, 23, 29, 32, 35, 48, 50, 60, 61, 65, 66, 69, 75})


@dataclass
class Seen:
    """A proxy's rule that changes nothing and counts the requests of each api key."""

    keys: Counter[int] = field(default_factory=Counter)

    def __call__(self, exchange: Exchange, frame: bytes) -> bytes:
        self.keys[exchange.api_key] += 1
        return frame

    def assert_asking(self, what: str) -> None:
        """Fail where nothing was asked, or a request has written."""
        assert self.keys, f"{what} has asked nothing"
        assert self.keys.keys() <= ASKING, f"requests of {what} that write: {sorted(self.keys.keys() - ASKING)}"
