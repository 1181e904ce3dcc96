"""The page of an instance for people: its files, and the drawing of a topology as coordinates."""
