"""Translate what our plugin in Amp reports into neutral terms. No I/O in this folder."""
