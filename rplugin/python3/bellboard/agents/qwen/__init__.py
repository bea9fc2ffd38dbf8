"""Qwen Code: its dialect, and the files that name its live sessions."""
