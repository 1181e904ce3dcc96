"""From YAML or Python to a model, with every mistake at its field."""
