"""The definitions of all metrics of an instance, by what they are about."""
