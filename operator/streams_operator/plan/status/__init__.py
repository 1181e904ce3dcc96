"""The status, its conditions and the events: how a decision reads."""
