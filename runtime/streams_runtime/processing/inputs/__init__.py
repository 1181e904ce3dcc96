"""What a batch reads: how much, how far, and what waits."""
