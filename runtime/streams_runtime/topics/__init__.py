"""The topics around an application: its users' are checked, its own are validated and set up."""
