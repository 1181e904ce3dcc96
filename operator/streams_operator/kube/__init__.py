"""The API server: requests, watches, the cache they fill, the lease and events."""
