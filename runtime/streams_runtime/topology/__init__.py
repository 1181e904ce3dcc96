"""The declared topology as sub-topologies, tasks and internal topics, without Kafka and without Spark."""
