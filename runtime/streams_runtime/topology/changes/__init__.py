"""What an upgrade changes of the state that is there: a pure comparison of two plans, store by store."""
