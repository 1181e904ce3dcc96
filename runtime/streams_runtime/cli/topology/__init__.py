"""`streamsapp topology`: the sub-topologies of a file as text, JSON, or a drawing; and how two files differ."""
