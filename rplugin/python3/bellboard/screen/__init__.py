"""Sessions on a terminal: listed, live, picked."""
