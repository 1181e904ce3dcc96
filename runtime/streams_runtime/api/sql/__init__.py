"""Spark SQL in an application, read without Spark: expressions, aggregate calls, the types of what they give."""
