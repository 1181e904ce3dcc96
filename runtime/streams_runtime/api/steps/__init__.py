"""The declared topology as models: sources, steps, windows, functions, sinks."""
