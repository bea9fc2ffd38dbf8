"""Other machines, users, mounts and networks."""
