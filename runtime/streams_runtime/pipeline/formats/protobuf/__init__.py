"""Protobuf, by the Confluent wire format."""
