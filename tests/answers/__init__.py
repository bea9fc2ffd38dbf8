"""Answers given to real CLIs by a hook that waits, and what the model got: `python -m answers`."""
