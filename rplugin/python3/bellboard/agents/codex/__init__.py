"""Codex: what it reports, and its shared server, which takes answers."""
