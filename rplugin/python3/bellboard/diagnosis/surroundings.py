"""Check the surroundings: the hooks of each CLI and their reports, tmux, system limits."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ..agents.agent import MOMENTS, Agent, ability_words
from ..agents.installing.hook_record import script, stored, unread
from ..agents.installing.installer import HookState
from ..agents.registry import installable, measured, printable
from ..core import words
from ..system.files import read
from ..system.inotify import usage
from ..system.packaged import Version, dotted
from ..system.tmux import Tmux, socket_in, sockets
from .fact import Fact, error, info, ok, program, warn

SCARCE: Final = 0.9  # share of a system limit in use
LARGEST: Final = 1 << 20  # bytes of a settings file to read


def other_abilities(environ: Mapping[str, str]) -> Iterator[Fact]:
    """List the abilities of the other CLIs on this machine."""
    for cli in measured()[1:]:
        if cli.is_used(environ):
            yield from newer(cli, cli.version(environ))
            for moment, ability in cli.abilities.items():
                yield info(f"{cli.name}: {MOMENTS[moment]}: {ability_words(moment, ability)}")


def newer(cli: Agent, version: Version | None) -> Iterator[Fact]:
    """Report a version that is newer than any that our tests run."""
    if version is not None and cli.tested and version > cli.tested:
        same = version[0] == cli.tested[0]
        differs = "usually nothing is different" if same else "much may be different"
        yield info(
            f"{cli.name} {dotted(version)} is newer than {dotted(cli.tested)}, the newest that was "
            f"tested: {differs}",
            "if a status is wrong, please report it, with this version",
        )


# ---------------------------------------------------------------- hooks


def hooks(home: Path, environ: Mapping[str, str], folder: Path) -> Iterator[Fact]:
    """Check that the hooks of each CLI are installed, and that the CLI runs them."""
    some = False
    for cli in installable():
        installer = cli.installer(home, environ)
        version = installer.version(None)
        states = [installer.check(path, version) for path in installer.files(folder)]
        yield from _states(cli, states, environ)
        some = some or any(state.events for state in states)
    for cli in printable():
        yield from _printed(cli, home, environ)
    try:
        stored(home)
    except OSError as e:
        yield warn(unread(home, e), "lost hooks are not noticed")
    runs = script(home)
    if some and not runs.is_file():
        yield error(
            f"the script that the hooks run is missing: {runs}", f"{program(environ)} hooks install"
        )


def _states(cli: Agent, states: Sequence[HookState], environ: Mapping[str, str]) -> Iterator[Fact]:
    """Check the files of one CLI."""
    first, install = states[0].path, f"{program(environ)} hooks install --agent {cli.key}"
    is_there = cli.is_used(environ)
    for state in states:
        text = f"{cli.name}: {state.path}: {state.summary()}"
        if state.problem and (is_there or state.path != first):
            yield warn(text, "repair the file: its hooks cannot be read")
        elif state.events and not state.is_whole:
            named = shlex.quote(str(state.path))
            file = "" if state.path == first else f" --settings {named}"
            yield warn(text, f"{install}{file}")
        elif state.events and state.obstacles:
            yield warn(text, "until you fix this, the agent does not run these hooks")
        elif state.events or state.plugin:
            yield ok(text)
    if is_there and not any(state.events or state.plugin for state in states):
        yield info(f"{cli.name}: hooks not installed: {cli.without_hooks}", install)


def _printed(cli: Agent, home: Path, environ: Mapping[str, str]) -> Iterator[Fact]:
    """Name a CLI on PATH whose hooks the user adds, and say where."""
    found = shutil.which(cli.program, path=environ.get("PATH", ""))
    if found is None:
        return
    known = "" if cli.abilities else "known by its documentation only; "
    user_home = environ.get("HOME", "")
    runs = str(script(home)).removeprefix(user_home)  # a command has $HOME before it
    if _names(Path(cli.place.replace("~", user_home, 1)), "bellboard", runs):
        yield ok(f"{cli.name}: {found}: {known}bellboard's hooks are in {cli.place}")
    else:
        print_them = f"{program(environ)} hooks print --agent {cli.key}"
        yield info(f"{cli.name}: {found}: {known}you add its hooks to {cli.place}", print_them)


def _names(path: Path, *texts: str) -> bool:
    """Return whether a file has one of these texts in it."""
    try:
        content = read(path, LARGEST)[0]
    except OSError:
        return False
    return any(os.fsencode(text) in content for text in texts)


# ---------------------------------------------------------------- the system


def system(environ: Mapping[str, str]) -> Iterator[Fact]:
    """Check tmux and the kernel's limits on watching files."""
    yield from _tmux(environ)
    used = usage()
    if used is None:
        yield info("no inotify here: changes are noticed a little later")
        return
    for what, limit, setting in (
        (used.watches, used.most_watches, "max_user_watches"),
        (used.instances, used.most_instances, "max_user_instances"),
    ):
        text = f"inotify: {what} of {limit} {setting.removeprefix('max_user_')} used"
        if what >= limit * SCARCE:
            yield warn(
                f"{text}; when none is left, files are polled once a second",
                f"sysctl fs.inotify.{setting}={limit * 4}",
            )
        else:
            yield ok(text)


def _tmux(environ: Mapping[str, str]) -> Iterator[Fact]:
    tmux = shutil.which("tmux", path=environ.get("PATH"))
    if tmux is None:
        yield info("no tmux: you can only jump to sessions in a terminal of Neovim or kitty")
        return
    here = socket_in(environ)
    servers = [Tmux(socket) for socket in dict.fromkeys((*sockets(environ), here)) if socket]
    answers = [(server, server.panes()) for server in servers]
    running = [f"{s.socket} ({words.amount(len(panes), 'pane')})" for s, panes in answers if panes]
    yield ok(f"{tmux}: {', '.join(running) or 'no server is running'}")
    for server, panes in answers:
        if panes is None:
            yield warn(server.why, "jumps to its sessions fail; check that server")
        elif panes and (server.ask("show-options", "-gv", "focus-events") or "").strip() == "off":
            yield info(
                f"{server.socket} does not report which terminal has the focus: what a Neovim or a "
                "pane shows counts as seen wherever you are",
                "set -g focus-events on, in tmux.conf",
            )
