"""Translate what Codex reports into neutral terms. No I/O in this folder."""
