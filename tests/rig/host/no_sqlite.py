"""Runs a program in a Python that was built without SQLite: no_sqlite.py -E PROGRAM [ARGUMENTS]."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

LACKS = "_sqlite3"


class Lacking:
    """Finds no such module, as if it were not there."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == LACKS:
            raise ModuleNotFoundError(f"No module named {LACKS!r}", name=LACKS)


sys.meta_path.insert(0, Lacking())
sys.argv[:] = sys.argv[2:]
sys.path[0] = str(Path(sys.argv[0]).parent)
runpy.run_path(sys.argv[0], run_name="__main__")
