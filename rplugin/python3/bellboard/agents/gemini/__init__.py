"""Gemini CLI: its dialect, and what its logs, titles and terminals show."""
