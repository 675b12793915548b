"""The embedded stack for demo, tests and benchmarks: Kafka brokers and a Spark Connect server on this machine only."""
