"""The types of Spark SQL expressions, without Spark."""
