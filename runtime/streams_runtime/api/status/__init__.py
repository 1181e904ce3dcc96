"""The status of the resource as typed models: the operator writes and reads it through them."""
