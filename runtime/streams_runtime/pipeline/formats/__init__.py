"""Bytes to columns and columns to bytes: JSON and Kafka's own serializers."""
