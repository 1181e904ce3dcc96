"""A reset: what it would do, decided purely, and its steps at the brokers."""
