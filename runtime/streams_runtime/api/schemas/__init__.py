"""Schemas as users declare them (Avro, Protobuf, JSON Schema, Spark DDL), without Spark and without a registry."""
