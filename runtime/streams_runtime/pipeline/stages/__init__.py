"""The stages of batches: which frames they have, the queries over them, and how these are asked."""
