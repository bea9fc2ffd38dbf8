"""Real agent CLIs, each in a home of its own, on a fake model."""
