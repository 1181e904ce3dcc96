"""spec.reset: what is on record of it, and its next step."""
