"""Start a session, if asked for in a worktree of its own: new.

It is started in a tmux window, or in this terminal.  In a window, this returns once the session is
on the board, so that the next command of a script finds it there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .arguments import Args, Subcommands, add, filled
from .home import Problem, check_mount, has_terminal, here, print_json, warn, working
from .wait import NEWER

if TYPE_CHECKING:
    from ..agents.agent import Agent
    from ..core.published import Published
    from ..hosting.host import Host
    from ..system.tmux import NewPane, Tmux
    from ..witnesses.repository import WorkingTree

PATIENCE: Final = 60.0  # seconds until a session must be on the board; a busy machine takes ten
GLANCE: Final = 0.2  # seconds between two looks at whether its process still runs
CHECKOUT: Final = 600.0  # seconds; a large repository takes minutes
ELSEWHERE: Final = "bellboard"  # the tmux session of windows that are opened from outside tmux
#: Variables of ours that a window gets besides the agent's own: those of its tmux server are older.
PASSED: Final = ("PATH", "BELLBOARD_HOME", "XDG_STATE_HOME")


def add_to(commands: Subcommands) -> None:
    made = add(commands, "new", new, "start a session, in a worktree of its own if you name one")
    made.usage = (
        f"{made.prog} [-h] [--agent AGENT] [--worktree NAME] [--detach | --print] [--json] "
        "[OPTIONS --] [PROMPT]"
    )
    made.epilog = (
        "OPTIONS are passed to the agent, from the first one that is not listed here; without -- "
        "all that follows is, too."
    )
    made.add_argument("--agent", metavar="AGENT", type=filled, help="start this one")
    text = "in the worktree of that name; made with a new branch of that name unless it exists"
    made.add_argument("--worktree", metavar="NAME", type=filled, help=text)
    how = made.add_mutually_exclusive_group()
    text = "in a tmux window that is not shown, also from outside tmux"
    how.add_argument("--detach", action="store_true", help=text)
    text = "make the worktree, and print the command to run in place of running it"
    how.add_argument("--print", action="store_true", help=text)
    made.add_argument("--json", action="store_true", help="print JSON")
    # The command of the default agent, as JSON: Neovim has an option for it.
    made.add_argument("--default", type=json.loads, help=argparse.SUPPRESS)
    text = "what it is to do; several words are joined"
    made.add_argument("words", metavar="PROMPT", nargs=argparse.REMAINDER, help=text)


class Start(NamedTuple):
    """A session to start: its agent, its command, and where."""

    agent: Agent
    prompt: str
    command: list[str]
    directory: str
    worktree: Worktree | None
    notes: list[str]  # what the user did not ask for

    def facts(self) -> dict[str, object]:
        """Return it for programs."""
        known: dict[str, object] = {"agent": self.agent.key, "command": self.command}
        known |= {"directory": self.directory, "notes": self.notes}
        if self.worktree is not None:
            known |= {"worktree": self.worktree.name, "branch": self.worktree.branch}
        return known


def new(args: Args) -> int:
    made = prepared(args)
    if args.print and args.json:
        print_json(made.facts())
        return 0
    for note in made.notes:
        warn(note)
    if args.print:
        print(f"cd {shlex.quote(made.directory)} && {shlex.join(made.command)}")
        return 0
    if args.detach or not has_terminal():
        return _follow(made, *_in_background(made), args.json)
    window = _beside(made)
    if window is None:
        from .goto import become

        os.chdir(made.directory)
        become(made.command)
    return _follow(made, *window, args.json)


# ---------------------------------------------------------------- what is started


def prepared(args: Args) -> Start:
    """Check all that is asked for, and make the worktree."""
    from ..system.mounts import near
    from .hooks import agent_named, problems

    agent = agent_named(args.agent)
    passed, prompt = divided(args.words)
    if prompt and not agent.prompting:
        raise Problem(
            f"{agent.name} takes no prompt when it starts; leave that out, and send it afterwards"
        )
    is_default = args.default and agent is agent_named(None)
    command = [*args.default] if is_default else [agent.program]
    if (program := near(command[0], os.environ.get("PATH", ""))) is None:
        raise Problem(f'"{command[0]}" is not on PATH')
    tree, notes = worktree(args.worktree) if args.worktree else (None, [])
    argv = [program, *command[1:]]
    try:
        with problems(here()):
            own = agent.own_hooks([*argv, *passed], here(), os.environ)
    except (Problem, ValueError) as e:
        own, notes = [], [*notes, f"started without hooks: {e}"]
    argv += [*own, *passed, *(agent.prompted(prompt) if prompt else ())]
    return Start(agent, prompt, argv, tree.path if tree else str(working()), tree, notes)


def divided(words: Sequence[str]) -> tuple[list[str], str]:
    """Divide what is given after our own options into options of the agent and a prompt."""
    if words and words[0].startswith("-"):
        at = words.index("--") if "--" in words else len(words)
        return [*words[:at]], " ".join(words[at + 1 :])
    if late := next((word for word in words if word.startswith("-")), ""):
        raise Problem(f"{late} comes before the prompt; or give -- in front of the prompt")
    return [], " ".join(words)


# ---------------------------------------------------------------- its worktree


class Worktree(NamedTuple):
    """A worktree: its folder, its name in the repository, and its branch."""

    path: str
    name: str
    branch: str


def worktree(name: str) -> tuple[Worktree, list[str]]:
    """Return the worktree of that name, which is made unless it exists, and remarks about it."""
    from ..witnesses.repository import tree_of

    folder = str(working())
    check_mount(folder)
    tree = tree_of(folder)
    if tree is None:
        raise Problem(f"{folder} is in no git repository; go to one, or leave out --worktree")
    if not _git("check-ref-format", f"refs/heads/{name}").is_done or name.startswith("-"):
        raise Problem(f'"{name}" cannot be the name of a branch')
    path = _folder_for(tree) / name.replace("/", "-")
    found = _existing(path)
    notes = []
    if found is not None:
        path, branch = found
        on = f", on branch {branch}" if branch else ""
        notes = [f"the worktree {path} exists{on}: the session starts there"]
    elif _git("show-ref", "--verify", "--quiet", f"refs/heads/{name}").is_done:
        branch = name
        _git("worktree", "add", str(path), name).checked()
        notes = [f"the branch {name} exists: it is checked out in {path}"]
    else:
        branch = name
        _git("worktree", "add", "-b", name, str(path)).checked()
    made = tree_of(str(path))
    return Worktree(str(path), made.git.name if made else path.name, branch), notes


def _folder_for(tree: WorkingTree) -> Path:
    """Return the folder of new worktrees: `api.worktrees` beside `api`."""
    if tree.common.name == ".git":
        return tree.common.parent.with_name(f"{tree.common.parent.name}.worktrees")
    if tree.git != tree.common:  # of a bare repository, whose worktrees are beside each other
        return tree.root.parent
    return tree.root.with_name(f"{tree.root.name}.worktrees")


def _existing(wanted: Path) -> tuple[Path, str] | None:
    """Return the worktree at a path, or else of the same folder name, and its branch."""
    found = []
    for block in _git("worktree", "list", "--porcelain").checked().split("\n\n")[1:]:
        facts = dict(row.partition(" ")[::2] for row in block.splitlines())
        path = Path(facts.get("worktree", ""))
        if path.name == wanted.name and path.is_dir():
            found.append((path, facts.get("branch", "").removeprefix("refs/heads/")))
    return next((each for each in found if each[0] == wanted), found[0] if found else None)


class GitRun(NamedTuple):
    """A run of git."""

    is_done: bool
    printed: str
    why: str

    def checked(self) -> str:
        """Return what it printed; raise `Problem` if it failed."""
        if not self.is_done:
            raise Problem(f"git: {self.why}")
        return self.printed


def _git(*words: str) -> GitRun:
    from ..system.mounts import near
    from ..system.programs import last_words, run

    program = near("git", os.environ.get("PATH", ""))
    if program is None:
        raise Problem("git is not on PATH, which makes worktrees; leave out --worktree")
    try:
        done = run([program, *words], CHECKOUT, {**os.environ, "GIT_TERMINAL_PROMPT": "0"})
    except subprocess.TimeoutExpired:
        raise Problem(f"git {words[0]} took longer than {CHECKOUT / 60:.0f} minutes") from None
    except (OSError, ValueError) as e:
        raise Problem(f"cannot run git: {e}") from None
    why = last_words(done.errors).removeprefix("fatal: ")
    return GitRun(done.code == 0, done.output.decode("utf-8", "surrogateescape"), why)


# ---------------------------------------------------------------- its window


def _beside(made: Start) -> tuple[Tmux, NewPane] | None:
    """Open it in a window of the tmux whose pane is this terminal; None if that is not one."""
    from .goto import tmux_server

    tmux, pane = tmux_server(), os.environ.get("TMUX_PANE", "")
    around = tmux.own(pane, os.ttyname(0)) if tmux else None
    if tmux is None or around is None:
        return None
    return tmux, _opened(tmux, tmux.open(around.session, *_window(made)))


def _in_background(made: Start) -> tuple[Tmux, NewPane]:
    """Open it in a tmux window that is not shown: beside ours, or in a session for such windows."""
    from ..agents.registry import unnested
    from ..system.tmux import Tmux, default_socket
    from .goto import tmux_server

    tmux, pane = tmux_server(), os.environ.get("TMUX_PANE", "")
    around = next((p for p in (tmux.panes() if tmux else None) or () if p.id == pane), None)
    if tmux is not None and around is not None:
        return tmux, _opened(tmux, tmux.open(around.session, *_window(made), is_shown=False))
    tmux = Tmux(default_socket(os.environ))
    window = _window(made)
    opened = tmux.open(f"={ELSEWHERE}", *window, is_shown=False)
    # Another command may begin that session at the same time.
    opened = opened or tmux.begin(ELSEWHERE, *window, unnested(os.environ))
    return tmux, _opened(tmux, opened or tmux.open(f"={ELSEWHERE}", *window, is_shown=False))


def _window(made: Start) -> tuple[list[str], str]:
    """Return the command of its window, and the name of that."""
    names = (*PASSED, *filter(None, [made.agent.variable]))
    given = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    there = ["sh", "-c", 'cd -- "$1" && shift && exec env "$@"', "sh", made.directory]
    return [*there, *given, *made.command], made.worktree.name if made.worktree else ""


def _opened(tmux: Tmux, opened: NewPane | None) -> NewPane:
    if opened is None:
        raise Problem(f"cannot open a tmux window: {tmux.why}")
    return opened


# ---------------------------------------------------------------- its row on the board


class Arrival:
    """Waits for the session of a process, in the event loop of a host."""

    def __init__(self, pid: int, tty: str, worktree: str) -> None:
        self.found: Published | None = None
        self._pid, self._tty, self._worktree = pid, tty, worktree
        self._began = time.time()
        self._is_named = False

    def begin(self, host: Host) -> None:
        """Stop the host once the session is there, its process has ended, or time is up."""
        import asyncio

        from ..system.processes import is_alive

        loop, until = asyncio.get_running_loop(), time.monotonic() + PATIENCE

        def look() -> None:
            if self._is_named or not is_alive(self._pid) or time.monotonic() > until:
                host.stop()
            else:
                loop.call_later(GLANCE, look)

        look()

    def push(self, message: Mapping[str, Any]) -> None:
        """Take a message of the host."""
        if message["stale"]:
            raise Problem(NEWER)
        for p in message["sessions"]:
            if self._is_ours(p):
                self.found = p
                self._is_named = not self._worktree or p.get("worktree") == self._worktree

    def _is_ours(self, p: Published) -> bool:
        from ..system.processes import ancestors

        pid = p.get("pid") or 0
        if pid and (pid == self._pid or self._pid in ancestors(pid)):
            return True
        # A server may run it; the terminal may have been another session's.
        return p.get("tty") == self._tty and float(p["updated"]) >= self._began


def _follow(made: Start, tmux: Tmux, opened: NewPane, as_json: bool) -> int:
    """Wait until the session is on the board, and print its id."""
    from .hosts import NOBODY, run_host

    p: Published | None = None
    if not (unseen := _unseen(made)):
        name = made.worktree.name if made.worktree else ""
        arrival = Arrival(opened.pid, opened.tty, name)
        if ended_by := run_host(arrival.push, {}, NOBODY, arrival.begin):
            return 128 + ended_by
        if (p := arrival.found) is None:
            raise Problem(_absence(made, tmux, opened))
    else:
        warn(unseen)
    if as_json:
        place = {"session_id": p["session_id"]} if p else {}
        print_json({**made.facts(), **place, "tmux": tmux.socket, "pane": opened.pane})
    elif p:
        print(p["session_id"])
    sys.stdout.flush()
    return 0


def _unseen(made: Start) -> str:
    """Return why the session will not be on the board soon; "" if it will."""
    from ..agents.installing.hookline import NOT_SHOWN
    from .hooks import has_hooks

    agent = made.agent
    if agent.hooks and agent.without_hooks == NOT_SHOWN and not has_hooks((agent,)):
        install = f"`bellboard hooks install --agent {agent.key}`"
        return f"{agent.name} is started; it is shown only with hooks: run {install}"
    unprompted = agent.abilities.get("unprompted")
    if unprompted is not None and not unprompted.source and not made.prompt:
        return f"{agent.name} is started; it is shown after its first prompt"
    return ""


def _absence(made: Start, tmux: Tmux, opened: NewPane) -> str:
    """Return why the session is not on the board."""
    from ..system.processes import is_alive

    if not is_alive(opened.pid):
        there = f"cd {shlex.quote(made.directory)} && {shlex.quote(made.command[0])}"
        return f"{made.agent.name} ended at once; see why with: {there}"
    with contextlib.suppress(StopIteration):
        pane = next(p for p in tmux.panes() or () if p.id == opened.pane)
        return (
            f"{made.agent.name} runs in {pane.name} of tmux, and has reported nothing for "
            f"{PATIENCE:.0f} seconds: look there, it may ask something first"
        )
    return f"{made.agent.name}: its tmux window was closed"
