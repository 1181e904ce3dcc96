"""The threads of a client: stream threads, which process, and the one that keeps global tables."""
