"""Translate what Gemini CLI reports into neutral terms. No I/O in this folder."""
