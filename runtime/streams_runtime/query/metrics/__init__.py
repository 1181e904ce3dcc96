"""Metric families for Prometheus, made of what a client has measured and of its account."""
