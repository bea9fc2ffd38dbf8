"""Translate what avante.nvim reports into neutral terms. No I/O in this folder."""
