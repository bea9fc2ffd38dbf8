"""What tells of sessions beside the hooks: their files, processes, terminals and repositories."""
