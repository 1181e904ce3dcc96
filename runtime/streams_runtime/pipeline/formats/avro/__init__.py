"""Avro, by the Confluent wire format."""
