"""GitHub Copilot CLI: its dialect, its logs, and the files that name its live sessions."""
