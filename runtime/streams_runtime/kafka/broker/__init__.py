"""A real Apache Kafka in a child process, for one machine."""
