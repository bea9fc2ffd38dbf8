"""The `hooks` commands: install, uninstall, check and print the hooks of each CLI."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..core.nearest import meant
from .arguments import Args, Subcommands, add, add_verbs, filled
from .home import (
    Problem,
    absolute,
    around,
    has_terminal,
    here,
    paints,
    print_json,
    reason,
    refusals,
    says_yes,
    warn,
    working,
)

if TYPE_CHECKING:
    from ..agents.agent import Agent
    from ..agents.installing.hookline import Hooked
    from ..agents.installing.installer import FileChange, Installer
    from ..system.packaged import Version

AGENT = "only this agent, such as codex"
SAME = "the same as --agent NAME"


class Target(NamedTuple):
    """A settings file, and the installer that changes it."""

    installer: Installer
    path: Path


def add_to(commands: Subcommands) -> None:
    verbs = add_verbs(commands, "hooks", "manage the hooks in the settings of agents")
    install = add(verbs, "install", install_hooks, "add the hooks, changing nothing else")
    uninstall = add(verbs, "uninstall", uninstall_hooks, "remove the hooks, changing nothing else")
    check = add(verbs, "check", check_hooks, "list the hooks; fails if any is missing")
    check.add_argument("--json", action="store_true", help="print JSON, and do not fail")
    printed = add(verbs, "print", print_hooks, "print the hooks, to add them yourself")
    for verb in (install, uninstall, check):
        whose = verb.add_mutually_exclusive_group()
        whose.add_argument("--agent", metavar="NAME", type=filled, help=AGENT)
        whose.add_argument(
            "agent", metavar="NAME", nargs="?", type=filled, default=argparse.SUPPRESS, help=SAME
        )
        whose.add_argument(
            "--all", action="store_true", help="every agent (default: those on this machine)"
        )
        which = verb.add_mutually_exclusive_group()
        which.add_argument("--user", action="store_true", help="user settings (default)")
        which.add_argument("--project", action="store_true", help="shared project settings")
        which.add_argument("--local", action="store_true", help="personal project settings")
        text = "another settings file"
        which.add_argument("--settings", metavar="FILE", type=filled, help=text)
    text = "those of this agent, such as codex (default: claude)"
    printed.add_argument("--agent", metavar="NAME", type=filled, help=text)
    printed.add_argument(
        "agent", metavar="NAME", nargs="?", type=filled, default=argparse.SUPPRESS, help=SAME
    )
    for verb in (install, uninstall):
        verb.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        verb.add_argument("--dry-run", action="store_true", help="print the diff and stop")
    for verb in (install, check, printed):
        verb.add_argument(
            "--cli",
            metavar="PATH|VERSION",
            type=filled,
            help="use the events of this Claude Code (default: the one on PATH)",
        )


def install_hooks(args: Args) -> int:
    status = _each(_targets(args), lambda target: _install(target, args))
    if not args.dry_run:
        from shutil import which

        listed = "`bellboard list`" if which("bellboard") else "`:ClaudeSessions board`"
        print(f"next: start an agent; every Neovim shows it: {listed}")
    return status


def uninstall_hooks(args: Args) -> int:
    return _each(_targets(args, removing=True), lambda target: _uninstall(target, args))


def _install(target: Target, args: Args) -> None:
    from ..core.text import plain

    installer, path = target
    version = _version(installer, args)
    with problems(path):
        change = installer.put_in(path, version)
    if do(installer, change, args.yes, args.dry_run) and change.is_none:
        print(f"the hooks are already in {short(path)}")
    if note := installer.left_out(version):
        print(note)
    if args.dry_run:
        return
    if installer.hooks.note and not change.is_none:
        print(f"{installer.cli.name}: {installer.hooks.note}")
    if args.project:
        print("this file is shared with the project; use --local for yourself only")
    for state in map(installer.check, dict.fromkeys((path, *installer.files(around())))):
        if state.plugin:
            print(f"{short(state.path)} also enables the plugin; each event still counts once")
        for obstacle in state.obstacles:
            print(f"{short(state.path)}: its hooks do not run: {plain(obstacle)}")
        for remark in state.remarks:
            print(f"{short(state.path)}: {plain(remark)}")


def _uninstall(target: Target, args: Args) -> None:
    installer, path = target
    with problems(path):
        change = installer.take_out(path)
    if do(installer, change, args.yes, args.dry_run) and change.is_none:
        print(f"there are no bellboard hooks in {short(path)}")


def check_hooks(args: Args) -> int:
    from ..agents.installing import hook_record
    from ..agents.registry import installable

    if args.json and args.agent and (cli := agent_named(args.agent)).hooks is None:
        print_json({"agents": [_about(cli, None)]})
        return 0
    named = args.agent or args.all or _is_one_file(args)
    installers = [_installer(cli) for cli in installable()]
    found = [each for each in installers if each.cli.is_used(os.environ)]
    if named:
        targets = _targets(args)
    else:
        targets = [Target(each, path) for each in found for path in each.files(around())]
    is_well, runs_script, agents = bool(targets), False, []
    for installer in dict.fromkeys(target.installer for target in targets):
        paths = [target.path for target in targets if target.installer is installer]
        with problems(installer.home):
            states = [installer.check(path, _version(installer, args)) for path in paths]
        has_some = any(state.events or state.plugin for state in states)
        agents.append(_about(installer.cli, has_some))
        for state in [] if args.json else states:
            print(f"{short(state.path)}: {state.summary()}")
        is_well &= any(state.is_complete or state.plugin for state in states)
        is_well &= not any(state.obstacles for state in states)
        runs_script |= any(state.is_complete for state in states)
    if args.json:
        print_json({"agents": agents})
        return 0
    if not targets:
        print(_found_none())
    script = hook_record.script(here())
    if is_well and runs_script and not script.is_file():
        print(f"{short(script)} is missing; run `bellboard hooks install` to restore it")
        return 1
    return 0 if is_well else 1


def has_hooks(among: Sequence[Agent] = ()) -> bool:
    """Return whether an agent on this machine has hooks, as far as its files can be read."""
    from ..agents.registry import installable

    for installer in map(_installer, among or installable()):
        with contextlib.suppress(Problem), problems(installer.home):
            states = map(installer.check, installer.files(around()))
            if installer.cli.is_used(os.environ) and any(s.events or s.plugin for s in states):
                return True
    return False


def print_hooks(args: Args) -> None:
    installer = _installer(agent_named(args.agent))
    with problems(installer.home):
        print(installer.printed(_version(installer, args)))


# ---------------------------------------------------------------- which files


def _targets(args: Args, removing: bool = False) -> list[Target]:
    """Return the files that the arguments name, or those of the agents on this machine."""
    from ..agents.registry import installable

    if args.all and args.settings:
        raise Problem("--settings is a file of one agent: name it with --agent, without --all")
    if args.agent or (not args.all and _is_one_file(args)):
        installers = [_installer(_cli(args.agent))]
    else:
        installers = [_installer(cli) for cli in installable()]
    if not (args.agent or args.all or _is_one_file(args)):
        there = [each for each in installers if each.cli.is_used(os.environ)]
        if not there and not removing:
            raise Problem(_found_none())
        installers = there or installers[:1]
    return [Target(each, _file(each, args)) for each in installers]


def _found_none() -> str:
    from ..agents.registry import installable, printable

    names = ", ".join(cli.key for cli in installable())
    there = [cli for cli in printable() if cli.is_used(os.environ)]
    prints = [f"; for {cli.name}, `bellboard hooks print --agent {cli.key}`" for cli in there]
    return f"found no agent on this machine; name one with --agent: {names}{''.join(prints)}"


def _is_one_file(args: Args) -> bool:
    return bool(args.user or args.project or args.local or args.settings)


def _file(installer: Installer, args: Args) -> Path:
    if args.settings:
        return Path(os.path.normpath(absolute(args.settings)))
    with problems(installer.home):
        if args.project or args.local:
            return installer.project_file(working(), local=args.local)
        return installer.user_file()


def _cli(agent: str | None, among: Sequence[Agent] = ()) -> Agent:
    """Return the CLI with this name, by default the first."""
    from ..agents.registry import installable

    known = {cli.key: cli for cli in among or installable()}
    if agent is None or agent in known:
        return known[agent] if agent else installable()[0]
    if any(cli.key == agent for cli in _printable()):
        printing = f"`bellboard hooks print --agent {agent}` prints them for you to add"
        raise Problem(f"bellboard does not install hooks for {agent}; {printing}")
    step = meant(agent, known, f"choose one of {', '.join(known)}")
    raise Problem(f'unknown agent "{agent}"; {step}')


def agent_named(agent: str | None) -> Agent:
    """Return the agent with this name, by default the first."""
    return _cli(agent, _printable())


def _printable() -> list[Agent]:
    """Return the CLIs that have hooks; chats have none."""
    from ..agents.registry import installable, printable

    return [*installable(), *printable()]


def _about(cli: Hooked, has_hooks: bool | None) -> dict[str, object]:
    """Return a CLI for programs; `has_hooks` is None if bellboard does not look for its hooks."""
    from ..agents.installing.hookline import NOT_SHOWN

    known = {"agent": cli.key, "name": cli.name, "program": cli.program, "hooks": has_hooks}
    return {**known, "shows": cli.without_hooks != NOT_SHOWN}  # whether it is shown without hooks


def _installer(cli: Agent) -> Installer:
    return cli.installer(here(), os.environ)


def _version(installer: Installer, args: Args) -> Version | None:
    with problems(installer.home):
        return installer.version(args.cli)


# ---------------------------------------------------------------- doing it


def _each(targets: list[Target], work: Callable[[Target], None]) -> int:
    """Call `work` for each file, even if it fails for another."""
    failed = False
    for target in targets:
        try:
            if len(targets) > 1:
                print(f"{target.installer.cli.name}: {short(target.path)}")
            work(target)
        except Exception as e:
            if len(targets) == 1:
                raise
            sys.stdout.flush()
            warn(f"{target.installer.cli.name}: {in_words(e)}")
            failed = True
    return int(failed)


def do(installer: Installer, change: FileChange, yes: bool, dry_run: bool = False) -> bool:
    """Show a change and apply it; return False on a dry run."""
    from ..core.text import plain

    if not change.is_none:
        _show(change, "" if yes or dry_run else f"Write this to {short(change.path)}?")
    if dry_run:
        return False
    with problems(change.path):
        # Even without a change, `apply` restores the script and the record.
        backup = installer.apply(change)
    if not change.is_none:
        done = "removed" if change.new is None else "written"
        print(plain(f"{done}: {change.path}" + (f"; backup: {backup.name}" if backup else "")))
    return True


def _show(change: FileChange, question: str) -> None:
    """Print a change and ask; one that is longer than the terminal is shown from its start."""
    from ..screen.request import CHANGED
    from ..screen.styled import StyledText
    from ..screen.terminal import console, write

    # Hide control characters: a project's settings may come from anyone.
    text = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in change.diff())
    first = text.splitlines()[:2]  # the names of the file
    parts = [
        (row, "bold" if row in first else CHANGED.get(row[:1], "")) for row in text.splitlines()
    ]
    if question and has_terminal() and paints() and len(parts) > os.get_terminal_size().lines - 1:
        from ..screen.picker import operate
        from ..screen.prompt import LongQuestion

        operate(asked := LongQuestion(parts, question))
        if not asked.is_yes:
            raise Problem("nothing was changed")
        return
    write(console(), [StyledText(*part) for part in parts])
    if question:
        confirm(question, yes=False)


@contextlib.contextmanager
def problems(path: Path) -> Iterator[None]:
    from ..agents.installing.installer import SettingsError

    try:
        with refusals():
            yield
    except SettingsError as e:
        raise Problem(str(e)) from None
    except OSError as e:
        raise Problem(f"cannot write {path}: {reason(e, path)}; nothing was written") from None


def confirm(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Problem("nothing was changed: no terminal to ask for confirmation; use --yes")
    if not says_yes(question):
        raise Problem("nothing was changed")


def in_words(e: Exception) -> str:
    """Return the failure of one file in words."""
    from ..system.failures import described

    return str(e) if isinstance(e, Problem) else described(e)


def short(path: Path) -> str:
    from ..core.words import plain, tilde

    return plain(tilde(str(path), os.environ.get("HOME", "")))
