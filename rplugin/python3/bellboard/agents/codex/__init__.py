"""Codex: its reports, and its shared server, which takes answers."""
