"""Translate what Crush reports into neutral terms. No I/O in this folder."""
