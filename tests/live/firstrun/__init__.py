"""The way of a new user from nothing to the first real session on the screen.

Not a test of the suite: it needs a network for the Python packages, lazy.nvim, Xvfb, xterm, xdotool
and ImageMagick, and reports what is missing.  See `python -m live firstrun --help`.
"""
