"""What a few scenes do that no row can say: `do NAME`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import psutil

from live.claude import ClaudeStage
from live.own.reported import FORGES
from rig import reaper
from rig.agents.scenarios import FORGED
from rig.waiting import eventually, rest

QUIET: Final = 2.0  # seconds in which nothing may change any more
#: A tool has no terminal of its own (/dev/tty); this finds that of the CLI, and reports to it.
FORGE: Final = f"""
import os, sys, time
time.sleep(float(sys.argv[1]))
def terminals():
    yield "/dev/tty"
    pid = os.getpid()
    while pid > 1:
        for fd in (0, 1, 2):
            path = os.readlink(f"/proc/{{pid}}/fd/{{fd}}")
            if path.startswith("/dev/pts/"):
                yield path
        with open(f"/proc/{{pid}}/stat") as f:
            pid = int(f.read().rpartition(")")[2].split()[1])
for path in terminals():
    try:
        with open(path, "w") as out:
            out.write({FORGED!r})
        print("written to", path)
        break
    except OSError as error:
        print(path, error.strerror)
"""
HIDE: Final = """
for _, w in ipairs(vim.fn.win_findbuf(...)) do
  vim.bo[vim.api.nvim_win_get_buf(w)].bufhidden = 'hide'
  vim.api.nvim_win_close(w, true)
end
"""


def accept_plans(stage: ClaudeStage) -> None:
    """Press Enter in each dialog until it rests."""
    for _ in range(3):
        stage.stands("waiting", QUIET)
        stage.press("Enter")
        rest(QUIET)
        if stage.says() == "idle":
            return


def hide_the_window(stage: ClaudeStage) -> None:
    """Close the window of a terminal of Neovim, whose buffer stays."""
    if stage.editor:
        stage.editor.lua(HIDE, stage.cli.pane._buffer)  # type: ignore[union-attr]


def kill_neovim(stage: ClaudeStage) -> None:
    assert stage.editor
    stage.editor.process.kill()
    eventually(lambda: stage.cli.pid in stage.witness.ended)


def wait_for_the_job(stage: ClaudeStage) -> None:
    """After /bg, a job of the CLI's daemon goes on, without a terminal; end it."""

    def is_there() -> bool:
        files = [x["registry"]["record"] for x in list(stage.witness.lines) if "registry" in x]
        return any(record and record.get("kind") == "bg" and "status" in record for record in files)

    try:
        eventually(lambda: stage.cli.pid in stage.witness.ended)
        eventually(is_there)
        rest(2 * QUIET)
    finally:
        reaper.end(reaper.family(_daemons(stage)))


def _daemons(stage: ClaudeStage) -> list[int]:
    """Return the CLI's daemons of this home."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if "daemon" in (argv := process.info["cmdline"] or [])
        and str(stage.home.root) in " ".join(argv)
    ]


def forge(stage: ClaudeStage) -> None:
    """Write what writes a report in place of the CLI."""
    stage.home.file("sub/forge.py", FORGE)
    stage.home.file("sub/forged.txt", f"before{FORGED}after\n")
    stage.witness.note(FORGES)


ODD: Final[dict[str, Callable[[ClaudeStage], None]]] = {
    each.__name__.replace("_", " "): each
    for each in (accept_plans, hide_the_window, kill_neovim, wait_for_the_job, forge)
}
