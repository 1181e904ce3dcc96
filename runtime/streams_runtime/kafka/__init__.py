"""Everything that touches Kafka: the only package that imports confluent_kafka."""
