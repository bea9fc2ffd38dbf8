"""How Claude Code says things, made into neutral words. No I/O in this folder."""
