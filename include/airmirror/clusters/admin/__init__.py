"""The admin client, over confluent-kafka: topics, configs, ACLs, records of internal topics."""
