"""The life of a client: its states, its threads, what an uncaught exception comes to, and its end."""
