"""The specification: what evidence means, and what follows from it. No I/O, no clock, no paths."""
