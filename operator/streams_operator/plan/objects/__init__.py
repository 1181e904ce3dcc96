"""What an application is made of in Kubernetes, as plain objects; the same application gives the same bytes."""
