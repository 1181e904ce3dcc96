"""What goes over HTTP between an instance and a querying client: records, keys, problems."""
