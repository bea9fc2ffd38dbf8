"""Translate what Droid reports into neutral terms. No I/O in this folder."""
