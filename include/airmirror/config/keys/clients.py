"""The names of the settings of Kafka's own clients (kafka-clients 4.2.0), which a file may hold for each cluster.

Kafka 4.0 removed ``auto.include.jmx.reporter``; files from before still hold it.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SECURITY = _names(
    """
    sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url security.protocol ssl.cipher.suites ssl.enabled.protocols
    ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    ssl.truststore.certificates ssl.truststore.location ssl.truststore.password ssl.truststore.type
    """
)
"""How to log in; also read from the top level, for all clusters."""

COMMON = _names(
    """
    auto.include.jmx.reporter bootstrap.servers client.dns.lookup client.id config.providers connections.max.idle.ms
    enable.metrics.push
    metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms
    security.providers send.buffer.bytes socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    """
)

CONNECTION = SECURITY | COMMON
"""The settings that every kind of client knows."""

CONSUMER = _names(
    """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs client.rack default.api.timeout.ms
    enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes
    internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records partition.assignment.strategy session.timeout.ms
    share.acknowledgement.mode share.acquire.mode value.deserializer
    """
)

PRODUCER = _names(
    """
    acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level delivery.timeout.ms enable.idempotence interceptor.classes key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys retries transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
    value.serializer
    """
)

ADMIN = _names("bootstrap.controllers default.api.timeout.ms retries")

ROLES = {
    "consumer": CONNECTION | CONSUMER,
    "producer": CONNECTION | PRODUCER,
    "admin": CONNECTION | ADMIN,
}
"""The settings that each kind of client knows."""

CLIENT = frozenset().union(*ROLES.values())
"""The settings that any kind of client knows."""

LOG_IN = _names(
    """
    sasl.jaas.config sasl.mechanism sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url
    security.protocol ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.key.password
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
    ssl.truststore.certificates ssl.truststore.location ssl.truststore.password ssl.truststore.type
    """
)
"""What is read of SECURITY. Of Java's classes there Kafka's own pass, others are refused where a client is made."""

COPIES = LOG_IN | _names(
    """
    bootstrap.servers isolation.level auto.offset.reset transaction.timeout.ms compression.type compression.gzip.level
    compression.lz4.level compression.zstd.level
    """
)
"""What windows read when they copy, with a client of their own."""

LIBRDKAFKA = _names(
    """
    bootstrap.servers client.dns.lookup client.id connections.max.idle.ms enable.metrics.push metadata.max.age.ms
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms
    retry.backoff.ms send.buffer.bytes socket.connection.setup.timeout.ms
    batch.size compression.type delivery.timeout.ms linger.ms max.request.size transaction.timeout.ms
    """
)
"""What counts besides LOG_IN for everything else, which goes through librdkafka."""

READ = COPIES | LIBRDKAFKA
"""The client settings that count here."""

SET_HERE = _names(
    "acks enable.idempotence max.in.flight.requests.per.connection retries transactional.id transaction.two.phase.commit.enable"
)
"""What a producer's settings can't change: everything is written with acks=all, records in transactions."""

NOT_OF_RECORDS = _names("batch.size delivery.timeout.ms linger.ms max.request.size")
"""What shapes a producer's batches: records keep theirs; it counts for offset syncs, checkpoints and heartbeats only."""

PREFIXES = {
    "<setting>": (
        "at the top level and at <cluster>.",
        "How to log in (security.protocol, sasl.…, ssl.…): of all clusters, or of one. At <cluster>. also what every kind of "
        "client knows.",
    ),
    "<consumer|producer|admin>.<setting>": (
        "at <cluster>. and at <source>-><target>.",
        "A setting of one kind of client: of this cluster, or of both clusters of a flow.",
    ),
    "<source|target>.cluster.<setting>": (
        "at <source>-><target>.",
        "What every kind of client knows, of one cluster of a flow.",
    ),
    "<source|target>.<consumer|producer|admin>.<setting>": (
        "at <source>-><target>.",
        "A setting of one kind of client, of one cluster of a flow. It wins over all others.",
    ),
    "producer.override.<setting>": (
        "at <source>-><target>.",
        "A setting of the target's producer, as Kafka Connect writes it.",
    ),
}
"""The prefixes under which client settings are read (M/MirrorConnectorConfig.java): where they may stand, and for whom."""
