"""Everything real that a test runs against: Neovims, tmux, the Claude Code CLI and a fake API."""
