"""The HTTP server of an instance: who may ask, what it answers with, its metrics and health."""
