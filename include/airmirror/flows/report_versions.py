"""What a flow's report rests on: versions, the configuration's digest, and the expectations of its gate."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from airmirror import __version__
from airmirror.config import Flow, resolve
from airmirror.flows.gates import Expectations
from airmirror.flows.prepare import Opened
from airmirror.flows.report_now import Now
from airmirror.report.canonical import canonical


def versions(record: Opened, here: Now, there: Now) -> list[dict[str, Any]]:
    """Versions of everything that has a say, as they are now."""
    rows = [
        [row.key, row.value] for row in sorted(resolve(record.configuration, record.flow.name), key=lambda row: row.key)
    ]
    digest = hashlib.sha256(canonical(rows)).hexdigest()
    return [
        {"name": "Airmirror", "value": __version__},
        {"name": "format of the mapping topic", "value": "1"},
        {"name": "window.verify", "value": record.flow.window.verify},
        {"name": "SHA-256 of the configuration, secrets masked", "value": digest},
        *(
            {"name": f"cluster {cluster.alias}", "value": line}
            for cluster, now in ((record.flow.source, here), (record.flow.target, there))
            for line in now.brokers
        ),
    ]


def expectations(flow: Flow, by: Expectations) -> list[dict[str, Any]]:
    """The expectations of the gate, as they are now, with the digest of the file that has them."""
    return [
        {
            "suite": suite.name,
            "topics": list(suite.topics) or ["all"],
            "expectation": each.type,
            "arguments": canonical(_texts(each.kwargs)).decode(),
            "severity": each.severity,
            "sha256_of_the_file": hashlib.sha256(Path(suite.path).read_bytes()).hexdigest(),
        }
        for suite in by.suites or ()
        if suite.is_for_flow(flow.name)
        for each in suite.expectations
    ]


def _texts(value: Any) -> Any:
    """The value with texts for fractions and the like, which canonical JSON has not."""
    if isinstance(value, dict):
        return {str(key): _texts(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_texts(each) for each in value]
    return value if value is None or isinstance(value, str | int) else str(value)
