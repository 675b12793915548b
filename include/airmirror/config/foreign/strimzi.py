"""Strimzi's resources: ``KafkaMirrorMaker2`` (API versions v1 and v1beta2) and ``KafkaConnector``, as connectors.

Each mirror of the resource is turned into the configurations that Strimzi's operator gives to Connect's REST API: clusters
at ``source.cluster.`` and ``target.cluster.``, then the connector's ``config``, then the patterns. Secrets become references
like ``${strimzisecrets:<secret>:<key>}`` (strimzi-kafka-operator 1.2, KafkaMirrorMaker2Connectors.java).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from airmirror.config.errors import Problem
from airmirror.config.foreign.connectors import CHECKPOINT, HEARTBEAT, PACKAGE, SOURCE, Connector, FoundSettings
from airmirror.config.foreign.tree import Node

SECRETS = "strimzisecrets"

_CONNECTORS = {"sourceConnector": SOURCE, "checkpointConnector": CHECKPOINT, "heartbeatConnector": HEARTBEAT}
_PATTERNS = {
    "topicsPattern": "topics",
    "topicsBlacklistPattern": "topics.exclude",
    "topicsExcludePattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsBlacklistPattern": "groups.exclude",
    "groupsExcludePattern": "groups.exclude",
}  # of two for one key the later counts
_OF_CLUSTER = {"alias", "bootstrapServers", "config", "tls", "authentication", "offsetStorageTopic"}
# Fields that have no effect here, each with the reason.
_OF_PODS = dict.fromkeys(
    (
        *("version", "replicas", "image", "resources", "livenessProbe", "readinessProbe", "jvmOptions", "jmxOptions"),
        *("logging", "clientRackInitImage", "template", "externalConfiguration", "metricsConfig", "tracing"),
    ),
    "of MirrorMaker 2's pods",
) | {"rack": "of pods; slots fetch from the leaders of partitions"}
_OF_CONNECT = dict.fromkeys(("groupId", "configStorageTopic", "statusStorageTopic"), "there is no Connect cluster")
_OF_RUNNING = dict.fromkeys(
    ("autoRestart", "pause", "state", "version", "listOffsets", "alterOffsets"), "Airflow's scheduler and retries do it"
)
_OFFSETS = "offset.storage.topic"
_DEFAULT_OFFSETS = "mirrormaker2-cluster-offsets"  # of v1beta2; in v1 it must be named
_SCRAM = {"scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512"}
_LOGIN = "org.apache.kafka.common.security."


def connectors_of(resource: Node, found: FoundSettings) -> Iterator[Connector]:
    """The connectors of a KafkaMirrorMaker2; what has no effect or can't be done goes to ``found``."""
    spec = resource.at("spec")
    clusters = {node.at("alias").text: node for node in spec.at("clusters").items}
    target = spec.fields.get("target") or clusters.get(spec.at("connectCluster").text)
    _tell(found, spec, "spec", {"target", "mirrors", "clusters", "connectCluster"}, _OF_PODS)
    for number, mirror in enumerate(spec.at("mirrors").items):
        path = f"spec.mirrors[{number}]"
        _tell(found, mirror, path, {"source", "sourceCluster", "targetCluster", *_CONNECTORS, *_PATTERNS})
        source = mirror.fields.get("source") or clusters.get(mirror.at("sourceCluster").text)
        to = clusters.get(mirror.at("targetCluster").text) if "targetCluster" in mirror.fields else target
        if source is None or to is None:
            wrong = "sourceCluster" if source is None else "targetCluster"
            problem = f"{wrong} names no cluster of spec.clusters: {mirror.at(wrong).text!r}"
            found.problems.append(Problem(mirror.line, path, problem))
            continue
        for side, cluster in (("source", source), ("target", to)):
            _tell(found, cluster, f"{path}.{side}", _OF_CLUSTER, _OF_CONNECT)
        both = dict(_cluster(to, "target.cluster.", found)) | dict(_cluster(source, "source.cluster.", found))
        names = f"{source.at('alias').text}->{to.at('alias').text}"
        patterns = {key: mirror.at(name) for name, key in _PATTERNS.items() if name in mirror.fields}
        for name, kind in _CONNECTORS.items():
            if name in mirror.fields:
                node = mirror.at(name)
                made = _connector(node, f"{names}.{kind}", kind, found, clusters=both, patterns=patterns)
                yield replace(made, workers_offsets=_workers_offsets(to))


def _workers_offsets(target: Node) -> Node:
    """The topic in which the Connect workers of a target cluster keep their progress."""
    named = target.at("offsetStorageTopic") if "offsetStorageTopic" in target.fields else target.at("config", _OFFSETS)
    return Node(named.line, named.text or _DEFAULT_OFFSETS)


def connector_of(resource: Node, found: FoundSettings) -> Connector:
    """The connector of a KafkaConnector."""
    spec = resource.at("spec")
    kind = spec.at("class").text.removeprefix(PACKAGE)
    return _connector(spec, resource.at("metadata", "name").text, kind, found, clusters={}, patterns={})


def _connector(
    node: Node,
    name: str,
    kind: str,
    found: FoundSettings,
    clusters: Mapping[str, Node],
    patterns: Mapping[str, Node],
) -> Connector:
    _tell(found, node, name, {"config", "tasksMax", "class"}, _OF_RUNNING)
    config = {**clusters, **node.at("config").fields, **patterns}
    if "tasksMax" in node.fields and kind == SOURCE:
        config["tasks.max"] = node.at("tasksMax")
    return Connector(name, kind, config, node.line)


def _cluster(node: Node, prefix: str, found: FoundSettings) -> Iterator[tuple[str, Node]]:
    """A cluster's settings as the operator writes them: its addresses, TLS, who we are, and its ``config``."""
    yield f"{prefix}alias", Node(node.line, node.at("alias").text)
    yield f"{prefix}bootstrap.servers", node.at("bootstrapServers")
    is_encrypted, login = "tls" in node.fields, node.at("authentication")
    has_sasl = login.at("sasl").text == "true"
    for key, value in _login(login, found):
        has_sasl = has_sasl or key.startswith("sasl.")
        yield f"{prefix}{key}", value
    if certificates := node.at("tls", "trustedCertificates").items:
        yield f"{prefix}ssl.truststore.type", Node(node.at("tls").line, "PEM")
        texts = "\n".join(_certificate(each, found) for each in certificates)
        yield f"{prefix}ssl.truststore.certificates", Node(certificates[0].line, texts)
    protocol = ("SASL_" if has_sasl else "") + ("SSL" if is_encrypted else "PLAINTEXT")
    where = node.at("tls") if is_encrypted else login
    yield f"{prefix}security.protocol", Node(where.line, protocol.removesuffix("_"))
    for key, each in node.at("config").fields.items():
        if key != _OFFSETS:  # the flow has it
            yield f"{prefix}{key}", each


def _certificate(node: Node, found: FoundSettings) -> str:
    if "pattern" in node.fields:
        problem = "a pattern names no file: write the names of the certificates (certificate: ca.crt)"
        found.problems.append(Problem(node.line, "trustedCertificates.pattern", problem))
    return reference(node.at("secretName").text, node.at("certificate").text)


def _login(node: Node, found: FoundSettings) -> Iterator[tuple[str, Node]]:
    """Who we are, by the type of ``authentication``."""

    def said(key: str, text: str) -> tuple[str, Node]:
        return key, Node(node.line, text)

    kind, user = node.at("type").text, node.at("username").text
    secret = node.at("passwordSecret")
    password = reference(secret.at("secretName").text, secret.at("password").text)
    if kind == "tls":
        pair = node.at("certificateAndKey")
        yield said("ssl.keystore.type", "PEM")
        for key, name in (("ssl.keystore.certificate.chain", "certificate"), ("ssl.keystore.key", "key")):
            yield said(key, reference(pair.at("secretName").text, pair.at(name).text))
    elif kind == "plain" or kind in _SCRAM:
        module = "plain.PlainLoginModule" if kind == "plain" else "scram.ScramLoginModule"
        yield said("sasl.mechanism", _SCRAM.get(kind, "PLAIN"))
        yield said("sasl.jaas.config", f'{_LOGIN}{module} required username="{user}" password="{password}";')
    elif kind == "oauth" and "clientSecret" in node.fields:
        yield said("sasl.mechanism", "OAUTHBEARER")
        yield said("sasl.oauthbearer.token.endpoint.url", node.at("tokenEndpointUri").text)
        its = node.at("clientSecret")
        yield said("sasl.oauthbearer.client.credentials.client.id", node.at("clientId").text)
        client_secret = reference(its.at("secretName").text, its.at("key").text)
        yield said("sasl.oauthbearer.client.credentials.client.secret", client_secret)
        if "scope" in node.fields:
            yield said("sasl.oauthbearer.scope", node.at("scope").text)
    elif kind == "custom":
        yield from node.at("config").fields.items()
    elif kind:
        problem = (
            "can't be done here: log in with tls, plain, scram-sha-256, scram-sha-512, or oauth with a clientSecret"
        )
        found.problems.append(Problem(node.line, "authentication.type", f"{kind} {problem}"))


def reference(secret: str, key: str) -> str:
    """A reference to a key of a Kubernetes secret, as the operator writes it (without a namespace: the resource's)."""
    return f"${{{SECRETS}:{secret}:{key}}}"


def _tell(found: FoundSettings, node: Node, path: str, known: set[str], without: dict[str, str] | None = None) -> None:
    """Note the fields that have no effect here, with their reasons; a field that Strimzi does not know is a problem."""
    for name, each in node.fields.items():
        if without and name in without:
            found.notes.append(Problem(each.line, f"{path}.{name}", f"no effect: {without[name]}"))
        elif name not in known:
            found.problems.append(Problem(each.line, f"{path}.{name}", "no field that Strimzi knows"))
