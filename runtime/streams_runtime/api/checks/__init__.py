"""Checks of one part of the resource each, without Kafka and without Spark."""
