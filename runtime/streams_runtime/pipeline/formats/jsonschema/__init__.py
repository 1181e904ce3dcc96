"""JSON with the id of its JSON Schema, by the Confluent wire format."""
