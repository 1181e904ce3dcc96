"""The store side of each kind of step: a batch's rows and the stores' contents become what the stores will hold."""
