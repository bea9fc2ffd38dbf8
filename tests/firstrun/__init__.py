"""From nothing to the first real session on screen, as a new user sees it.

Not a test of the suite: it needs a network for the Python packages, lazy.nvim, Xvfb, xterm, xdotool
and ImageMagick, and says what it could not get.  `python -m firstrun --help`.
"""
