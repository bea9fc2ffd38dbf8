"""Translate what our extension in Pi reports into neutral terms. No I/O in this folder."""
