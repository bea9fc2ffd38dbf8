"""Install, check and remove the hooks in Claude Code's settings files."""
