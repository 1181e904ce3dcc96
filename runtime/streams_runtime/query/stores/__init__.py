"""Handles over the local partitions of a store, as KafkaStreams#store gives them (KIP-216)."""
