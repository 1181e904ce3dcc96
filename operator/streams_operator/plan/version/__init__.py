"""Which version of an application is in force, and what it mounts."""
