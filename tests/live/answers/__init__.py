"""Answers given to real CLIs, and what the model got: `python -m live answers`."""
