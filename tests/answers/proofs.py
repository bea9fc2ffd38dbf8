"""Proofs with several sessions: `python -m answers.proofs [NAME]…`."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Final

from answers.place import Place, answers_on, place
from rig.editor import Editor
from rig.scenarios import Turn, say, shell
from rig.waiting import eventually

NEWEST: Final = "2.1.330"
TEN: Final = 10
CAN: Final = "return require('bellboard.action.opened').can()"
OPEN: Final = """
local open = require('bellboard.action.opened').now()
return open and open.request.parts and open.request.parts[1].text or ''
"""
WAYS: Final = """
local ways = {}
for _, way in ipairs(require('bellboard.action.opened').now().request.ways or {}) do
  ways[#ways + 1] = way.name
end
return table.concat(ways, ' ')
"""
QUIET: Final = {"float": {"enabled": False}}


def ten() -> None:
    """Ten sessions blocked at once, answered in one triage with one key each."""
    with place() as made:
        names = [f"p{n}" for n in range(TEN)]
        for name in names:
            turn = Turn((shell(f"touch {name}.txt"),))
            made.api.scenarios[name] = (turn, say(f"Done {name}."))
        editor = Editor("0.12", made.home, "nvim", **look())
        try:
            editor.shows("~")
            answers_on(made)
            for name in names:
                made.start(name, NEWEST)
            made.api.hold()
            for name, cli in zip(names, made.started, strict=True):
                cli.submit(f"play:{name} please")
            eventually(lambda: len([r for r in made.api.requests if r.scenario]) >= TEN)
            made.api.release()
            for cli in made.started:
                cli.shows(r"❯ 1\. Yes")
            eventually(lambda: blocked(editor) == TEN, "ten blocked")
            triaged(made, editor)
        finally:
            editor.close()


def triaged(made: Place, editor: Editor) -> None:
    editor.lua("vim.keymap.set('i', '<C-g>', '<Plug>(bellboard-triage)')")
    editor.press("ihello<C-g>")
    times, ways, begun, before = [], [], time.time(), ""
    for n in range(TEN):
        command = eventually(lambda b=before: shown(editor, b), f"request {n}")
        before, name = command, command.removeprefix("touch ").removesuffix(".txt")
        way = editor.lua(WAYS)
        eventually(lambda: editor.lua(CAN), "keys that count")
        key = "D" if n % 3 == 2 else "A"
        at = time.time()
        editor.press(key)
        next_ = made.next(name)
        there = (made.home.project / name / f"{name}.txt").exists()
        heard = next_.results
        assert there == (key == "A"), (name, key, heard)
        assert ("The user said no." in str(heard)) == (key == "D"), (name, key, heard)
        times.append(next_.time - at)
        ways.append(way)
        print(f"{name:4} {key} {way:14} {next_.time - at:6.3f} s  {heard}", flush=True)
    total = time.time() - begun
    editor.press(" world")
    editor.shows("hello world")
    print(f"p50 {statistics.median(times):.3f} s, worst {max(times):.3f} s, all ten {total:.1f} s")
    eventually(lambda: not made.left(), "no hook that waits")


def look() -> dict[str, object]:
    more: dict[str, object] = {"lua": "", "peers": (), "args": (), "env": {}, "ui": True}
    return {"config": QUIET, "columns": 100, "lines": 40, **more}


def blocked(editor: Editor) -> int:
    count = "return vim.tbl_count(vim.tbl_filter(function(s) return s.status == 'blocked' end,"
    return int(editor.lua(f"{count} require('bellboard.state.sessions').list()))"))


def shown(editor: Editor, before: str) -> str:
    command = str(editor.lua(OPEN))
    return command if command != before else ""


PROOFS: Final[dict[str, Callable[[], None]]] = {"ten": ten}

if __name__ == "__main__":
    for name in sys.argv[1:] or PROOFS:
        print(f"== {name}", flush=True)
        PROOFS[name]()
