"""The parts of the resource as models, as far as they are not about the topology."""
