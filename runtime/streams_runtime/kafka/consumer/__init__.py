"""Reading: the group's member, the restore consumers, ranges, and records as columns."""
