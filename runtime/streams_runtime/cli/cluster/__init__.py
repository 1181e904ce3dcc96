"""`kubectl streamsapp`: applications of a cluster, through kubectl."""
