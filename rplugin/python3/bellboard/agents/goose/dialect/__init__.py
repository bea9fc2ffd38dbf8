"""Translate what Goose reports into neutral terms. No I/O in this folder."""
