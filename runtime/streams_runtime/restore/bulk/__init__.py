"""Large restorations in worker processes."""
