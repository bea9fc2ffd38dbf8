"""Pi: its dialect, of what our extension reports."""
