"""Records of a topic: fed from a file, and printed."""
