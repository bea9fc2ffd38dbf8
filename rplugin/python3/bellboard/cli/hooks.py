"""The hooks of Claude Code: hooks install, uninstall, check, print; and uninstall, of it all."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .home import (
    Args,
    Commands,
    Problem,
    add,
    here,
    reason,
    warn,
)

if TYPE_CHECKING:
    from ..agents.claude_code.installer.settings import Change, Settings
    from ..agents.claude_code.version import Version

#: What hosts, hooks and these commands make in the state folder.
STATE = (
    *("spool", "hosts", "answers", "board.db", "board.db-*", "board.db.damaged-*", "board.lock"),
    "drain.lock",
    *("emit", "hooks.json", "hooks.lock"),
)


def add_to(commands: Commands) -> None:
    hooks = add(
        commands, "hooks", show_help, "put the hooks into Claude Code's settings, or take them out"
    )
    hooks.set_defaults(top=hooks)
    verbs = hooks.add_subparsers(metavar="VERB", title="verbs")
    install = add(verbs, "install", install_hooks, "put them in, beside what is there")
    uninstall = add(verbs, "uninstall", uninstall_hooks, "take them out, and nothing else")
    check = add(verbs, "check", check_hooks, "say where they are; fails unless they are complete")
    printed = add(verbs, "print", print_hooks, "print them, for claude --settings")
    for verb in (install, uninstall, check):
        which = verb.add_mutually_exclusive_group()
        which.add_argument("--user", action="store_true", help="of all sessions (default)")
        which.add_argument("--project", action="store_true", help="of this folder, shared")
        which.add_argument("--local", action="store_true", help="of this folder, not shared")
        which.add_argument("--settings", metavar="FILE", help="any other settings file")
    for verb in (install, uninstall):
        verb.add_argument("--yes", action="store_true", help="do not ask")
        verb.add_argument("--dry-run", action="store_true", help="only print the diff")
    for verb in (install, check, printed):
        verb.add_argument(
            "--cli",
            metavar="PATH|VERSION",
            help="register what this Claude Code knows (default: the one on PATH)",
        )
    remove = add(commands, "uninstall", uninstall_all, "take the hooks out of every settings file")
    remove.add_argument("--yes", action="store_true", help="do not ask")
    remove.add_argument("--purge", action="store_true", help="remove the state folder too")


def show_help(args: Args) -> None:
    args.top.print_help()


def install_hooks(args: Args) -> None:
    settings, path = _settings(), _file(args)
    with _problems(path):
        change = settings.put_in(path, _version(args))
    if _do(settings, change, args.yes, args.dry_run) and change.is_none:
        print(f"the hooks are in {_short(path)} already")
    if args.dry_run:
        return
    if args.project:
        print("who shares this folder shares that file; --local is for you alone")
    for state in map(settings.check, settings.files(Path.cwd())):
        if state.plugin:
            print(f"{_short(state.path)} enables the plugin as well: an event still counts once")


def uninstall_hooks(args: Args) -> None:
    settings, path = _settings(), _file(args)
    with _problems(path):
        change = settings.take_out(path)
    if _do(settings, change, args.yes, args.dry_run) and change.is_none:
        print(f"no hooks of bellboard are in {_short(path)}")


def check_hooks(args: Args) -> int:
    from ..agents.claude_code.installer import installed

    settings, version = _settings(), _version(args)
    named = args.user or args.project or args.local or args.settings
    paths = [_file(args)] if named else settings.files(Path.cwd())
    with _problems(settings.home):
        states = [settings.check(path, version) for path in paths]
    for state in states:
        print(f"{_short(state.path)}: {state.said()}")
    told = [state for state in states if state.is_complete or state.plugin]
    if not told or any(state.disabled for state in states):
        return 1
    script = installed.script(settings.home)
    if any(state.is_complete for state in told) and not script.is_file():
        print(f"{_short(script)} is gone; `bellboard hooks install` and each start put it back")
        return 1
    return 0


def print_hooks(args: Args) -> None:
    import json

    settings = _settings()
    with _problems(settings.home):
        printed = settings.printed(_version(args))
    print(json.dumps(printed, indent=2, ensure_ascii=False))


def uninstall_all(args: Args) -> int:
    from ..agents.claude_code.installer.settings import backups

    settings = _settings()
    paths = settings.files(Path.cwd())
    failed = False
    for path in paths:
        try:
            with _problems(path):
                if settings.check(path).plugin:
                    print(f"{_short(path)} enables the plugin: claude plugin uninstall bellboard")
                change = settings.take_out(path)
            _do(settings, change, args.yes)
        except Problem as e:
            warn(str(e))
            failed = True
    copies = [copy for path in paths for copy in backups(path)]
    if failed:
        return 1
    if not args.purge:
        for copy in copies:
            print(f"kept: {copy}")
        if settings.home.exists():
            print(f"kept: {settings.home}; `bellboard uninstall --purge` removes both")
        return 0
    _purge(settings.home, copies, args.yes)
    return 0


def _do(settings: Settings, change: Change, yes: bool, dry_run: bool = False) -> bool:
    """Show what it changes, and make it so; False if it is only to be shown."""
    if not change.is_none:
        # What a terminal would act on is not shown as it is: a project's settings are not ours.
        shown = (c if c.isprintable() or c in "\n\t" else "\ufffd" for c in change.diff())
        print("".join(shown), end="")
    if dry_run:
        return False
    if not change.is_none:
        _ask(f"Write this into {_short(change.path)}?", yes)
    with _problems(change.path):
        backup = settings.apply(change)  # without a change: the script, and what is recorded
    if not change.is_none:
        done = "removed" if change.new is None else "written"
        print(f"{done}: {change.path}" + (f"; as it was: {backup.name}" if backup else ""))
    return True


@contextlib.contextmanager
def _problems(path: Path) -> Iterator[None]:
    from ..agents.claude_code.installer.settings import Refused
    from ..storage import spool

    try:
        yield
    except Refused as e:
        raise Problem(str(e)) from None
    except spool.Refused as e:
        raise Problem(f"{e}; set BELLBOARD_HOME to a folder of your own") from None
    except OSError as e:
        raise Problem(f"cannot write {path}: {reason(e, path)}; nothing was written") from None


def _purge(home: Path, copies: list[Path], yes: bool) -> None:
    """Remove what bellboard made there, and the folder if nothing else is in it."""
    import shutil

    from ..storage.spool import Spool

    if not home.exists():
        return
    if hosts := list(Spool(home).alive_hosts()):
        raise Problem(f"hosts run, and would make it anew: end the processes {hosts} first")
    ours = [path for name in STATE for path in home.glob(name)]
    for path in (*ours, *copies):
        print(f"- {path}")
    _ask("Remove these?", yes)
    for path in (*ours, *copies):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if rest := sorted(path.name for path in home.iterdir()):
        print(f"kept: {home}, for it has {', '.join(rest)} in it")
    else:
        home.rmdir()


def _settings() -> Settings:
    from ..agents.claude_code.installer.settings import Settings

    return Settings(here(), os.environ)


def _file(args: Args) -> Path:
    from ..agents.claude_code.installer.settings import project_file, user_file

    if args.settings:
        return Path(os.path.abspath(Path(args.settings).expanduser()))  # noqa: PTH100 - links stay
    if args.project or args.local:
        return project_file(Path.cwd(), local=args.local)
    return user_file(os.environ)


def _version(args: Args) -> Version | None:
    from ..agents.claude_code.version import version_of

    found = version_of(args.cli, os.environ)
    if found is None:
        if args.cli:
            raise Problem(f"--cli {args.cli}: neither a version, as 2.1.328, nor a Claude Code")
        warn("no claude on PATH to ask for its version: only the events that all of them know")
    return found


def _ask(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Problem("nothing was done: there is no terminal to ask; with --yes it is done")
    sys.stdout.flush()
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise Problem("nothing was done")


def _short(path: Path) -> str:
    from ..core.words import plain, tilde

    return plain(tilde(str(path), os.environ.get("HOME", "")))
