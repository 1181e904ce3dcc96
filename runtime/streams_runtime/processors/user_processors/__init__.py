"""Processors of a user's own, in Python (Kafka Streams' Processor API): a task's object of a class, and its records."""
