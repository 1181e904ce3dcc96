"""`streamsapp reset`: the command, and what it prints."""
