"""The operator: decides what should exist in Kubernetes for each StreamsApplication, and makes it so."""
