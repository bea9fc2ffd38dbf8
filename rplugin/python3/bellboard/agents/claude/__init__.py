"""Claude Code: its reports, its ways to take answers, and other signs of its state."""

from __future__ import annotations
