"""`streamsapp query`: reads a store of a running application, one JSON object a line."""
