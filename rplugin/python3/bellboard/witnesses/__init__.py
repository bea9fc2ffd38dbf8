"""Sources of evidence besides hooks: processes, terminals, repositories, pull requests."""
