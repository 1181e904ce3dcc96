"""What an application is doing, as a tree: of a local run, and of one in a cluster."""
