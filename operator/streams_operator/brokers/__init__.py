"""Work at the Kafka brokers, in threads with deadlines."""
