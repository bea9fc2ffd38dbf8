"""Codex: its dialect, and its server, which takes answers."""
