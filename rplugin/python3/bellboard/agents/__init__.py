"""The agents' CLIs, a folder for each; `evidence.py` is where what they say becomes events."""
