"""Translate what GitHub Copilot CLI reports into neutral terms. No I/O in this folder."""
