"""Try bellboard with other plugins and colorschemes, in a real terminal.

`check` tries each picker and each plugin with terminals, with a user's keys. `look` writes a
picture of each view in each theme, for you to look at. It lists what is not available.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from live.others.plugins import found
from live.others.themes import THEMES
from live.others.views import CHECKS, VIEWS
from live.xterm import XServer, Xterm
from rig import home as homes
from rig.editor import Editor
from rig.fetched.cache import Missing
from rig.host.sample import QUIET

COLUMNS, LINES = 110, 30
SETTLE = 0.7  # seconds for the terminal to draw what the editor has sent


@contextmanager
def editing(version: str, plugins: list[Path], ui: bool) -> Iterator[Editor]:
    """Start a Neovim with these plugins; with `ui`, its screen is read instead of shown."""
    home = homes.build()
    lua = "\n".join(f"vim.opt.rtp:append('{path}')" for path in plugins)
    path = [str(folder / "usr/bin") for folder in plugins] + [home.env["PATH"]]
    editor = Editor(
        version, home, "others", config=QUIET, lua=lua, peers=(), ui=ui, args=(),
        env={"PATH": ":".join(path)}, columns=COLUMNS, lines=LINES,
    )  # fmt: skip
    try:
        yield editor
    finally:
        editor.close()
        homes.remove(home)


def had(given: argparse.Namespace, views: dict[str, Any]) -> Iterator[tuple[str, list[Path]]]:
    """Return the chosen ones whose plugins are available; print the others."""
    for name, (needs, _) in views.items():
        if any(part in name for part in given.parts or [""]):
            try:
                yield name, [found(need, given.plugins) for need in needs]
            except Missing as why:
                print(f"skipped {name}: {why}")


def look(given: argparse.Namespace) -> int:
    with ExitStack() as stack:
        desk = XServer()
        stack.callback(desk.close)
        for name, plugins in had(given, VIEWS):
            for theme in given.themes:
                lua, term, dark = THEMES[theme]
                with editing(given.nvim, plugins, ui=False) as editor:
                    terminal = Xterm(desk, editor, COLUMNS, LINES, term, dark)
                    editor.lua(lua)
                    VIEWS[name][1](editor)
                    time.sleep(SETTLE)
                    file = given.out / f"{name}-{theme}-{given.nvim}.png"
                    desk.picture(file, "-trim", "+repage")
                    terminal.close()
                    print(file)
    return 0


def check(given: argparse.Namespace) -> int:
    failed = 0
    for name, plugins in had(given, CHECKS):
        with editing(given.nvim, plugins, ui=True) as editor:
            worked: list[str] = []
            try:
                worked.extend(CHECKS[name][1](editor))
                print(f"ok      {name}: {', '.join(worked)}")
            except Missing as why:
                print(f"skipped {name}: {why}")
            except (AssertionError, OSError) as problem:
                failed += 1
                print(f"FAILED  {name}: after {', '.join(worked) or 'nothing'}\n{problem}")
    return 1 if failed else 0


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m live others", description=__doc__)
    parser.add_argument("--plugins", type=Path, help="folder that has them")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "bellboard-looks")
    parser.add_argument("--nvim", default="0.12")
    parser.add_argument("--themes", nargs="*", default=list(THEMES))
    parser.add_argument("what", choices=["check", "look"])
    parser.add_argument("parts", nargs="*", help="parts of the names of what to try")
    given = parser.parse_args(argv)
    return check(given) if given.what == "check" else look(given)
