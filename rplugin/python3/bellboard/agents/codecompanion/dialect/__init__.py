"""Translate what codecompanion.nvim reports into neutral terms. No I/O in this folder."""
