"""Translate what OpenCode reports into neutral terms. No I/O in this folder."""
