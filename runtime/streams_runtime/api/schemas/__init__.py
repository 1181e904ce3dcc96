"""Schemas as users declare them (Avro, Protobuf, Spark DDL), without Spark and without a registry."""
