"""What stands around a host in a test: what it reads, what reads it."""
