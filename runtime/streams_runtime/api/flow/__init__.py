"""What flows between the steps of a declared topology: columns, keys, streams and tables."""
