"""How many instances `spec.autoscaling` wants: from samples of the load to a number, a reason and an event."""
