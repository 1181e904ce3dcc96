"""`streamsapp snapshots`: what lies in an application's bucket, whether it is whole, and the end of what is too old."""
