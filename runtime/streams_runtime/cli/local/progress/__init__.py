"""What a local run shows: its progress as values, as a live table, as lines, as JSON."""
