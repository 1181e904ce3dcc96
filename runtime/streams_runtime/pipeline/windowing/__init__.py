"""Windows, stream time and the places of records, as columns of a DataFrame."""
