"""What every client has in common: properties, security, librdkafka's errors and its C interface."""
