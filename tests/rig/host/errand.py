"""Carry out what an editor asks of its background process, about sessions that a test has pushed.

What is done and what is replied is the background process's own; only its board is not there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rig import ROOT

sys.path.insert(0, str(ROOT / "rplugin/python3"))

from bellboard.hosting import errands
from bellboard.hosting.asked import RequestReader
from bellboard.storage.spool import Spool
from bellboard.system.reach import run_alone


class Pushed(dict[str, Any]):
    """A session as it was pushed; the background process would have one of its board."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name, "")


def main() -> None:
    asked = json.load(sys.stdin)
    board = {p["session_id"]: Pushed(p) for p in asked["sessions"]}
    errands.publish = lambda s: s  # type: ignore[assignment,return-value] # it is published already
    find: Any = board.get
    requests = RequestReader(Spool(Path("/nowhere")), find, lambda _: ())
    made = errands.Errands(requests, lambda _: "")
    json.dump(run_alone(made.do(asked["what"], asked["request"])), sys.stdout)


if __name__ == "__main__":
    main()
