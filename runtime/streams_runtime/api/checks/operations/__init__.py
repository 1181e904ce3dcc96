"""Checks of what operating an application asks for: how many instances there are, and a reset."""
