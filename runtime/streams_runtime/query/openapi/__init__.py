"""The OpenAPI document of the HTTP server, and a page that shows it."""
