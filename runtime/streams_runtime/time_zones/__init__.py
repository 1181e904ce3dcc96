"""The clocks of time zones, and the windows of whole days that they divide time into: pure, and from one database."""
