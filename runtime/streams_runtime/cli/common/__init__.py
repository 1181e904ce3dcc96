"""What verbs share: how they are loaded, and the file that most of them are given."""
