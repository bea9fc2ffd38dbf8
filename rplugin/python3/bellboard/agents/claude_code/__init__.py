"""Claude Code: its dialect, its witnesses, and the installer of our hooks."""
