"""Processes with one streams client: a pod's, a local instance's, an executor's."""
