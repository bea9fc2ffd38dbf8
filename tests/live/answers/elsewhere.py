"""A session in a Neovim inside tmux, answered from everywhere else."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Final

from bellboard.screen.prompt import SOON
from live.answers.place import CAN, PROGRAM, QUIET, Place, answers_on, look, place, shown
from live.report import figures
from rig import editor as editors
from rig.agents.agent import Agent
from rig.agents.scenarios import Turn, say, shell
from rig.editor import Editor
from rig.machines.ssh import Machine
from rig.tmux import Pane, Server
from rig.waiting import eventually, rest

EACH: Final = 5  # answers from each place
INSIDE: Final = """
vim.api.nvim_create_autocmd('VimEnter', { callback = function()
  vim.cmd.enew()
  local job = vim.fn.jobstart(vim.json.decode(%s), { cwd = %s, term = true })
  vim.fn.writefile({ tostring(vim.fn.jobpid(job)) }, %s)
  vim.cmd.startinsert()
end })
"""
POPUP: Final = ("answer", "--popup")


def across(version: str) -> None:
    """Print the time from each key to the model's next request."""
    with place(version) as made, ExitStack() as ending:
        calls = [Turn((shell(f"touch x{n}.txt"),)) for n in range(7 * EACH)]
        made.api.scenarios["many"] = (*calls, say("Done."))
        editor = Editor("0.12", made.home, "a", **look())
        ending.callback(editor.close)
        editor.shows("~")
        answers_on(made)
        cli = inside(made)
        cli.submit("play:many please")
        machine = Machine("here", home=made.home)
        ending.callback(machine.place.close)
        outer = Server(made.home, "outer.sock")
        ending.callback(outer.close)
        steps = iter(range(7 * EACH))
        timed("its own terminal", made, steps, lambda n: by_hand(cli, n))
        timed("another Neovim", made, steps, lambda n: by_editor(made, cli, editor))
        made.asked(cli)
        popup = displayed(made, outer, ending)
        timed("display-popup", made, steps, lambda n: by_popup(popup, n))
        popup.press("q")
        terminal = outer.open([*machine.ssh[:-1], "-t", machine.name, program(*POPUP)])
        timed("popup over ssh -t", made, steps, lambda n: by_popup(terminal, n))
        terminal.press("q")
        shell_ = outer.open(
            [*machine.ssh[:-1], "-t", machine.name, "sh"], session="wide", columns=200
        )
        timed("command in an ssh shell", made, steps, lambda n: by_shell(made, cli, shell_))
        timed("command, a shell without environment", made, steps, lambda n: bare(made, cli))
        argv = [*machine.ssh, program("answer", made.session(cli), "allow")]
        timed("ssh with the command", made, steps, lambda n: run(made, cli, argv))
        alone = [took([*machine.ssh, "true"]) for _ in range(EACH)]
        print(figures("ssh by itself", alone), flush=True)


def inside(made: Place) -> Agent:
    """Start a CLI in a terminal of a Neovim in a pane."""
    launch = made.prepare("session")
    found = made.home.root / "cli.pid"
    given = (
        json.dumps(json.dumps(launch.command)),
        *map(json.dumps, (str(launch.cwd), str(found))),
    )
    argv = editors.command("0.12", made.home, "b", config=QUIET, lua=INSIDE % given)
    pane = made.tmux.open(argv, session="work", columns=110, lines=45)
    cli = Agent(launch, pane)
    cli.pid = int(eventually(lambda: found.exists() and found.read_text().strip(), "its process"))
    made.watch.follow(cli.pid)
    made.started.append(cli)
    cli.ready()
    return cli


def displayed(made: Place, outer: Server, ending: ExitStack) -> Pane:
    """Open a popup of tmux on a client; return the pane that the client is in."""
    inner = ["tmux", "-S", str(made.tmux.socket)]
    pane = outer.open([*inner, "attach-session", "-t", "work"], columns=110, lines=45)
    pane.shows(r"touch x\d+\.txt")  # the prompt may have scrolled away
    (client,) = made.tmux.run("list-clients", "-F", "#{client_name}").split()
    where = ("-c", client, "-t", client, "-w", "90%", "-h", "90%")
    argv = [*inner, "display-popup", *where, "-E", program(*POPUP)]
    started = subprocess.Popen(argv, env=made.home.env, stdin=subprocess.DEVNULL)
    ending.callback(started.wait)
    ending.callback(started.terminate)
    return pane


def program(*args: str) -> str:
    return shlex.join([*PROGRAM, *args])


def timed(where: str, made: Place, steps: Iterator[int], key: Callable[[int], float]) -> None:
    """Answer some requests; print the seconds from each key to the model's next request."""
    times = []
    for step in islice(steps, EACH):
        at = key(step)
        times.append(made.next("many", step + 1).time - at)
    print(figures(where, times), flush=True)


def by_hand(cli: Agent, step: int) -> float:
    """Answer as without bellboard; the others are as fast at best."""
    cli.shows(rf"(?s)touch x{step}\.txt.*❯ 1\. Yes")
    rest(SOON + 0.2)
    at = time.time()
    cli.press("Enter")
    return at


def by_editor(made: Place, cli: Agent, editor: Editor) -> float:
    made.asked(cli)
    editor.command("ClaudeSessions triage")
    eventually(lambda: shown(editor, ""), "a request")
    eventually(lambda: editor.lua(CAN), "keys that count")
    at = time.time()
    editor.press("A")
    return at


def by_popup(pane: Pane, step: int) -> float:
    pane.shows(rf"(?s)touch x{step}\.txt.*go terminal")
    rest(SOON + 0.2)
    at = time.time()
    pane.press("A")
    return at


def by_shell(made: Place, cli: Agent, pane: Pane) -> float:
    made.asked(cli)
    command = program("answer", made.session(cli), "allow")
    pane.type(command)
    tail = re.escape(command[-12:])
    pane.shows(tail)
    at = time.time()
    pane.press("Enter")
    return at


def bare(made: Place, cli: Agent) -> float:
    made.asked(cli)
    kept = ("HOME", "BELLBOARD_HOME", "CLAUDE_CONFIG_DIR")
    env = {name: made.home.env[name] for name in kept}
    at = time.time()
    subprocess.run([*PROGRAM, "answer", made.session(cli), "allow"], env=env, check=True)
    return at


def took(argv: list[str]) -> float:
    """Return the seconds that a command takes."""
    begun = time.monotonic()
    subprocess.run(argv, stdin=subprocess.DEVNULL, check=True)
    return time.monotonic() - begun


def run(made: Place, cli: Agent, argv: list[str]) -> float:
    made.asked(cli)
    at = time.time()
    subprocess.run(argv, stdin=subprocess.DEVNULL, check=True)
    return at
