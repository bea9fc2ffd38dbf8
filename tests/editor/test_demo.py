"""`make try` and `:ClaudeSessions demo`: what a newcomer sees first must always work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pynvim
import pytest

from demo import film, run
from rig import ROOT
from rig.fetched import neovim
from rig.fixtures import Editors
from rig.home import Home
from rig.screen import Display
from rig.waiting import eventually, rest

pytestmark = pytest.mark.timeout(240)


def test_the_demo_shows_every_status_and_leaves_nothing() -> None:
    """The demo shows each status, the float and the board in time, and exits with 0."""
    neovim.executable("stable")
    done = subprocess.run(
        ["make", "try", "HEADLESS=1"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("!1 ?1", "x1", "+1", "&1", "2 need you", "rm -rf build && make all", "6 sessions"):
        assert text in done.stdout
    assert "every status was on the screen after" in done.stdout


def test_the_demo_fails_when_it_shows_nothing(tmp_path: Path) -> None:
    """A check counts only after it was seen failing: a hook that does nothing is noticed."""
    editor = neovim.executable("0.12")
    for name in ("lua", "plugin", "rplugin", "demo", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("traces"))
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/emit").symlink_to("/bin/true")
    done = subprocess.run(
        [sys.executable, "demo/film.py", "--patience", "4"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{editor.parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the statusline lacks" in done.stderr  # its session files alone show most of it


def test_the_folder_of_the_demo_is_removed_after_all_who_write_there() -> None:
    """A host that ends after its Neovim makes its folders again."""
    with run.home() as (folder, env, held):
        script = 'mkdir -p "$BELLBOARD_HOME/hosts" && : >"$BELLBOARD_HOME/hosts/$$" && echo up'
        late = subprocess.Popen(
            ["sh", "-c", f'{script}; read end; sleep 1; mkdir -p "$BELLBOARD_HOME/spool"'],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(held,),
        )
        assert late.stdin
        assert late.stdout
        assert late.stdout.readline() == b"up\n"
        late.stdin.close()
        threading.Thread(target=late.wait).start()  # an ended child of ours looks as if it ran
    assert late.wait() == 0
    late.stdout.close()
    assert not folder.exists()


#: How an answer to a session would get there, in words.
WAY = """
local got, project = nil, ...
local session = vim.iter(require('bellboard').calling()):find(function(each)
  return each.words.project == project
end)
require('bellboard').request(session.session_id, function(request) got = request end)
vim.wait(5000, function() return got end, 10)
return got.ways[1].words
"""


class Demo:
    """A running demo in 80x24 cells, and a user of it."""

    def __init__(self, socket: Path) -> None:
        self.display = Display(socket, 80, 24)
        self.nvim: Any = pynvim.attach("socket", path=str(socket))

    def shows(self, *texts: str) -> None:
        def look() -> bool:
            shown = self.display.picture.text
            missing = [text for text in texts if text not in shown]
            assert not missing, f"{missing} not on the screen:\n{shown}"
            return True

        eventually(look)

    def printed(self, scene: str, text: str) -> None:
        """Wait until an agent has printed a line."""

        def look() -> bool:
            lines = self.nvim.call("getbufline", f"agent://{scene}", 1, "$")
            shown = [line for line in lines if line]
            assert any(text in line for line in shown), f"no {text!r} in {scene}: {shown}"
            return True

        eventually(look)

    def type(self, scene: str, keys: str) -> None:
        """Type into the terminal of an agent."""
        channel = self.nvim.call("getbufvar", f"agent://{scene}", "terminal_job_id")
        self.nvim.call("chansend", channel, keys)

    def press(self, *keys: str) -> None:
        for key in keys:
            rest(0.5)  # keys that follow another one, or the view, too soon answer nothing
            self.nvim.input(key)

    def asked(self) -> str:
        """Return the project whose request is shown."""
        found = re.search(
            r"╭ (api|web): (?:Run a command|Answer a question)", self.display.picture.text
        )
        return found[1] if found else ""

    def answers(self, way: str, nth: int, chosen: str, text: str) -> None:
        """Answer both requests: choose an option, and say no with a text."""
        self.shows("2 need you")
        for _ in range(2):
            self.press("<C-y>")  # shows whichever has waited longer
            project = eventually(self.asked, "a request")
            eventually(lambda project=project: self.nvim.exec_lua(WAY, project) == way, way)
            if project == "web":
                self.press(str(nth))
                self.shows(f"(x) {chosen}")
                self.press("A")
                self.shows("web: answered")
                self.printed("web", f"● {chosen}")
            else:
                self.press("R")
                self.shows("<C-s> send")
                self.press(f"{text}<C-s>")
                self.shows('api "add rate limits to')
                self.printed("api", f"⎿ {text}")
                self.printed("api", "● Then I leave the build alone.")


@pytest.fixture
def demo() -> Iterator[Demo]:
    neovim.executable("stable")
    with film.editor() as socket:
        eventually(socket.exists, "the demo's Neovim")
        made = Demo(socket)
        yield made
        made.nvim.command("qall!", async_=True)
    made.display.close()
    with suppress(OSError):  # one more request lets the client see the end of the connection
        made.nvim.request("nvim_get_mode")
    made.nvim.close()


def test_the_requests_of_the_demo_can_be_answered(demo: Demo) -> None:
    """By keys, as in a real terminal; and by their hooks, as the message after that advises.

    The guide can be read beside both requests in 80 columns, and no key of it is tmux's own.
    """
    guide = [line.strip() for line in demo.nvim.current.buffer[:]]
    demo.shows("2 need you", "Which database should the tests use?", *guide)
    assert "Ctrl-b" not in str(guide)
    demo.answers("by keys in its terminal", 2, "SQLite in memory", "use ninja")
    demo.printed("web", "the tests use SQLite")
    for scene in ("api", "web"):
        demo.type(scene, "\r")
    demo.shows("2 need you")
    for scene in ("api", "web"):
        demo.type(scene, "\x1b")
        demo.printed(scene, "● Interrupted")
    eventually(lambda: "need you" not in demo.display.picture.text, "nothing that is asked")
    demo.nvim.command("ClaudeSessions answers on")
    demo.shows("answers on: hooks wait")
    for scene in ("api", "web"):
        demo.type(scene, "\r")
    demo.answers("by its hook", 1, "PostgreSQL in a container", "use meson")


def home_of(pid: int) -> Path:
    """Return the folder of the demo with that process: its sweeper is told."""
    for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        words = Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0")
        if b"--sweep" in words:
            return Path(words[-2].decode())
    raise AssertionError("no sweeper")


ITS_COLORS = """
local channel = vim.fn.sockconnect('pipe', ..., { rpc = true })
local played = vim.fn.rpcrequest(channel, 'nvim_get_option_value', 'termguicolors', {})
vim.fn.chanclose(channel)
return { vim.o.termguicolors, played }
"""


@pytest.mark.parametrize("end", ["<C-q>", "<C-\\><C-n>:tabclose<CR>", "<C-\\><C-n>:qall!<CR>"])
def test_the_demo_of_the_command_leaves_nothing_and_touches_nothing(
    nvim: Editors, home: Home, end: str
) -> None:
    """However it ends; it starts no background process, and lists nothing on the user's board."""
    editor = nvim(config={"python": sys.executable, "auto_start": False})
    editor.command("ClaudeSessions demo")
    editor.shows("bellboard.nvim, live")
    editor.shows("2 need you")
    folder = home_of(editor.lua("return vim.fn.jobpid(vim.bo.channel)"))
    assert len(editor.lua("return vim.api.nvim_list_tabpages()")) == 2
    (address,) = folder.glob("run/nvim.*")
    assert editor.lua(ITS_COLORS, str(address)) == [False, False]  # else none would be seen
    assert not editor.lua("return require('bellboard.process.talk').status().running")
    editor.command("ClaudeSessions demo")  # goes to it
    assert len(editor.lua("return vim.api.nvim_list_tabpages()")) == 2
    processes = [pid for pid in running(folder) if pid != os.getpid()]
    assert len(processes) > 6
    editor.nvim.input(end)
    eventually(lambda: not folder.exists(), "the end of its folder")
    eventually(lambda: not running(folder), "the end of its processes")
    if "qall" not in end:
        eventually(lambda: len(editor.lua("return vim.api.nvim_list_tabpages()")) == 1, "its tab")
        names = editor.lua(
            "return vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs())"
        )
        assert not [name for name in names if name.startswith("term:") or "demo" in name]
    assert not (home.claude / "settings.json").exists()
    assert not list((home.bellboard / "hosts").glob("*"))


def running(folder: Path) -> list[int]:
    """Return the processes that use this home."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"HOME={folder}\0".encode() in (each / "environ").read_bytes():
                found.append(int(each.name))
    return found
