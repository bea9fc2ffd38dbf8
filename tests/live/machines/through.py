"""A CLI behind a terminal of Neovim: over ssh, or in a container, with nothing of ours there."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bellboard.system import processes
from live.machines.place import Laptop, Station, contained, laptops, stations
from rig.agents import agent
from rig.editor import Editor
from rig.fetched import claude_code
from rig.fixtures import Editors
from rig.machines.ssh import Container, Machine
from rig.waiting import eventually

QUICK = ("-oServerAliveInterval=1", "-oServerAliveCountMax=2")


class Terminal:
    """A terminal of Neovim that leads to a CLI elsewhere."""

    def __init__(self, editor: Editor, argv: Sequence[str]) -> None:
        self.editor = editor
        self.buffer, self.channel, self.pid = editor.lua(
            """
            vim.cmd.enew()
            local channel = vim.fn.termopen((...))
            vim.cmd.startinsert()
            return { vim.api.nvim_get_current_buf(), channel, vim.fn.jobpid(channel) }""",
            [*argv],
        )

    @property
    def shown(self) -> str:
        lines = self.editor.lua("return vim.api.nvim_buf_get_lines(..., 0, -1, false)", self.buffer)
        return "\n".join(lines)

    def shows(self, text: str) -> None:
        eventually(lambda: text in self.shown, text)

    def types(self, text: str) -> None:
        self.editor.lua("vim.fn.chansend(...)", self.channel, text)

    def prompts(self, text: str) -> None:
        """Write a prompt, and submit it once it is shown: what comes at once is a paste."""
        self.types(text)
        self.shows(text)
        self.types("\r")

    def allows(self) -> None:
        """Answer its dialog, which takes no key in its first moments."""
        self.shows("1. Yes")
        time.sleep(1)
        self.types("1")

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return all sessions on the board, by id."""
        return {
            x["session_id"]: x for x in self.editor.lua("return require('bellboard').sessions()")
        }

    def becomes(self, *wanted: str) -> dict[str, Any]:
        """Wait until that is the status of each session; return the first one."""

        def look() -> bool:
            found = self.rows()
            assert sorted(x["status"] for x in found.values()) == sorted(wanted), found
            return True

        eventually(look)
        return next(iter(self.rows().values()), {})


@contextlib.contextmanager
def neovim(laptop: Laptop) -> Iterator[Editor]:
    """Start a Neovim with a background process."""
    editors = Editors(laptop.home)
    editor = editors("0.12", {}, columns=110, lines=45)
    try:
        eventually(lambda: editor.lua("return require('bellboard').health().version"))
        yield editor
    finally:
        editor.close()


def command(there: Station, *options: str) -> list[str]:
    """Return the command that starts a CLI there in a terminal, as a user would."""
    launch = agent.prepare(there.home, there.api, there.watch, version=claude_code.VERSION)
    machine = there.machine
    env = [f"{key}={x}" for key, x in {**launch.env, "TERM": "xterm-256color"}.items()]
    login = 'exec env -i SSH_CONNECTION="$SSH_CONNECTION"'
    start = f"cd {shlex.quote(str(launch.cwd))} && {login} {shlex.join([*env, *launch.argv])}"
    if isinstance(machine, Machine):
        return [machine.ssh[0], "-tt", *options, *machine.ssh[1:], start]
    return [*machine.enter, "sh", "-c", start]


def turn(terminal: Terminal, project: str) -> str:
    """Play a turn that asks; return the id of its row."""
    row = terminal.becomes("idle")
    assert (row["words"]["project"], row["agent"]) == (project, "claude"), row
    assert not {"cwd", "branch", "transcript"} & row.keys(), row
    terminal.prompts("play:perm please")
    row = terminal.becomes("blocked")
    assert row["kind"] == "permission", row
    print(f"   {row['words']['project']}: {row['words']['doing']}", flush=True)
    terminal.allows()
    terminal.becomes("completed")
    terminal.prompts("play:slow please")
    terminal.becomes("working")
    terminal.shows("word2")
    return str(row["session_id"])


def ssh() -> None:
    """A CLI over ssh: its row is true, and ends with it, with its ssh, and with the connection."""
    with stations("dev") as (dev,), laptops() as (laptop,), neovim(laptop) as editor:
        terminal = Terminal(editor, command(dev))
        turn(terminal, "ssh dev")
        terminal.types("\x1b")
        terminal.becomes("idle")
        terminal.prompts("/exit")
        terminal.becomes()
        print("   it said that it ended", flush=True)
        for name, end in ends(dev).items():
            terminal = Terminal(editor, command(dev, *QUICK))
            turn(terminal, "ssh dev")
            end(terminal)
            terminal.becomes()
            print(f"   gone: {name}", flush=True)


def ends(dev: Station) -> dict[str, Callable[[Terminal], object]]:
    def killed(terminal: Terminal) -> None:
        """Kill the CLI: its login ends with it."""
        found = dev.machine.run("pgrep", "-n", "-f", "permission-mode").split()
        dev.machine.run("kill", "-9", *found)

    def ssh_killed(terminal: Terminal) -> None:
        there = (terminal.pid, *processes.descendants(terminal.pid))
        os.kill(next(pid for pid in there if "ssh" in processes.argv_of(pid)[0]), signal.SIGKILL)

    def cut(terminal: Terminal) -> None:
        assert isinstance(dev.machine, Machine)
        dev.machine.cut()

    return {"killed": killed, "ssh killed": ssh_killed, "connection cut": cut}


def linked() -> None:
    """A CLI over ssh, with hooks there, and a link to that machine: one row."""
    with stations("dev") as (dev,), laptops() as (laptop,), neovim(laptop) as editor:
        terminal = Terminal(editor, command(dev))
        own = turn(terminal, "ssh dev")
        assert own.startswith("process-"), own
        dev.machine.bellboard("hooks", "install", "--yes", "--cli", claude_code.VERSION)
        laptop.follow(dev)
        eventually(lambda: [*terminal.rows()] and not {own} & terminal.rows().keys(), "its link")
        row = terminal.becomes("working")
        assert row["session_id"].startswith("dev/claude/"), row
        terminal.types("\x1b")
        terminal.becomes("idle")
        terminal.prompts("play:perm please")
        terminal.becomes("blocked")
        laptop.bellboard("machine", "remove", "dev")
        terminal.becomes()
        terminal.allows()
        row = terminal.becomes("completed")
        assert row["session_id"] == own, row
        print("   one row with a link, and without", flush=True)


def docker() -> None:
    """A CLI in a container, as with `docker exec -it`: with processes of its own."""
    with contained() as box, laptops() as (laptop,), neovim(laptop) as editor:
        assert isinstance(box.machine, Container)
        terminal = Terminal(editor, command(box))
        turn(terminal, "nsenter")
        terminal.types("\x1b")
        terminal.becomes("idle")
        terminal.prompts("/exit")
        terminal.becomes()
        terminal = Terminal(editor, command(box))
        turn(terminal, "nsenter")
        box.machine.place.crash()
        terminal.becomes()
        print("   gone with the container", flush=True)
