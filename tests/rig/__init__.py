"""Everything real that tests run against: Neovims, tmux, the Claude Code CLI, and a fake API."""
