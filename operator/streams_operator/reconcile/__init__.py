"""The loop: the work queue, one round, what a round observes and what it writes."""
