"""Amp: its dialect, as its makers document it; nothing here was measured."""
