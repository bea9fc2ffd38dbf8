"""Translate what Kimi Code reports into neutral terms. No I/O in this folder."""
