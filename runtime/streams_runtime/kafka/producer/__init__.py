"""Writing: batches, transactions, and what is not known to be written."""
