"""The agents, one folder for each CLI; `evidence.py` turns what they report into events."""
