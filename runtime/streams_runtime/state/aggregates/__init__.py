"""What each aggregate function keeps, and how what it keeps of two sets of records becomes one."""
