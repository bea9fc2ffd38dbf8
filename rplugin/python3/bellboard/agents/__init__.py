"""The agents, a file or folder for each CLI; `trace_line.py` turns their reports into events."""
