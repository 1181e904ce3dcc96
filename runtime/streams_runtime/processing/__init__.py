"""A stream thread's loop: what a batch reads, what is computed of it, how it is committed."""
