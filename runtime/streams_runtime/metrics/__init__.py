"""What a client measures: how, under which names, and what each of them means."""
