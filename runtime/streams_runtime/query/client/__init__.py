"""The querying client: sends a query to the instances that have its partitions."""
