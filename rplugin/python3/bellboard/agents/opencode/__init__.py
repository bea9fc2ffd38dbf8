"""OpenCode: its dialect; our plugin in it, and its server, which take answers."""
