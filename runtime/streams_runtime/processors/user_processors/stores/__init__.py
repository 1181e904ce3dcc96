"""What a process step has in its stores: typed views, over what a batch has written."""
