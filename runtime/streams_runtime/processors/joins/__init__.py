"""Joins of streams, tables and global tables, and joins of tables by a foreign key."""
