"""Each ordinal: what its pod has come to, and whether to make, replace or remove it."""
