"""What confluent-kafka does: topics, configs, ACLs, records of internal topics."""
