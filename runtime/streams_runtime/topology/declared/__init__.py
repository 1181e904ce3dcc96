"""From declared steps to nodes and stores."""
