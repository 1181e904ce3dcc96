"""Spark itself: the session, clusters and executors, users' functions, what Spark refuses and why a query failed."""
