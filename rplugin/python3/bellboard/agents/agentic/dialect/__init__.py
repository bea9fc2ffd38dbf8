"""Translate what agentic.nvim reports into neutral terms. No I/O in this folder."""
