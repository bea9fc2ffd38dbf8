"""Translate what Cursor CLI reports into neutral terms. No I/O in this folder."""
