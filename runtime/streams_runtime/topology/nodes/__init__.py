"""The nodes of a plan, by kind."""
