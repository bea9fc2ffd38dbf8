"""Claude Code: how it names things, where it tells of itself, how our hooks get into it."""
