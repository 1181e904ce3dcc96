"""Records over which a step fails: how they are found in a batch, and what becomes of them."""
