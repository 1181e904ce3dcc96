"""What a scan does beside reading: `where`s, `select`s and partial aggregates, as Spark's own sources take them over.

Spark analyses every expression; those whose analysed form Arrow computes to the same result are taken over by the scan,
with all that is before them, and the rest is Spark's. So is the stage behind a join with a table. See
runtime/streams_runtime/pipeline/README.md, "What the scan takes over".
"""
