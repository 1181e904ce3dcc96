"""Copies of stores in a bucket, from which an instance without a store begins."""
