"""GitHub Copilot CLI: its hooks, its logs, and the files that name its live sessions."""
