"""`streamsapp run`: the replicas of an application as processes of this machine, watched and shown."""
