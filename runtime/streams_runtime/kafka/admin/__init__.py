"""Questions and orders to the brokers."""
