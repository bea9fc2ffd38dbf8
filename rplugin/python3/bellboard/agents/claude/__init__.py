"""Claude Code: what it reports, how it takes answers, and what it shows besides."""

from __future__ import annotations
