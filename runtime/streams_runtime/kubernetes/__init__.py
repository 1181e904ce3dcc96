"""What the pod of a streams client says of itself: its own conditions, through its own service account."""
