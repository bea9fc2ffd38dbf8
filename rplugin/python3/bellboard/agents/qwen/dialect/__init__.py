"""Translate what Qwen Code reports into neutral terms. No I/O in this folder."""
