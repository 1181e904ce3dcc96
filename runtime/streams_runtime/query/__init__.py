"""Interactive queries: handles over local stores, an HTTP server, a client that routes between instances."""
