"""The columns of a batch, the order of its records, its encoding: pure Arrow, without Spark and without Kafka."""
