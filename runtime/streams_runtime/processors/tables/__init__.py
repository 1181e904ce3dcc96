"""Steps over tables: what a table holds at each moment of a batch, and the changes in between."""
