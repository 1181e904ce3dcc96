"""What is done without Spark, by what its analysis has found out: queries, and the first batches of a start."""
