"""A desktop that records notifications: a `notify-send` on the PATH of a home."""

from __future__ import annotations

from pathlib import Path

from rig.home import Home
from rig.waiting import eventually

SCRIPT = """#!/bin/sh
told=$(mktemp -d "$0.told/XXXXXX")
for word; do printf '%s\\0' "$word"; done >"$told/words"
mv "$told/words" "$told/done"
"""


class Desktop:
    """Records the arguments of each `notify-send`."""

    def __init__(self, home: Home) -> None:
        self.program = home.bin / "notify-send"
        self.program.write_text(SCRIPT)
        self.program.chmod(0o755)
        self.folder = Path(f"{self.program}.told")
        self.folder.mkdir()

    @property
    def notices(self) -> list[list[str]]:
        """Return the notifications, in no particular order."""
        return [path.read_text().split("\0")[:-1] for path in self.folder.glob("*/done")]

    @property
    def titles(self) -> list[str]:
        return sorted(words[-2] for words in self.notices)

    def shows(self, *titles: str) -> None:
        """Wait until exactly these were shown."""

        def look() -> bool:
            assert self.titles == sorted(titles)
            return True

        eventually(look)
