"""The agents, a file or folder for each CLI; `trace_line.py` turns what they report into events."""
