"""What Spark does about each kind of node: one class a kind (spark_kind.SparkKind), named once in spark_kinds.py."""
