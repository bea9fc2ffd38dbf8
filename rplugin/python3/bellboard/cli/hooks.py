"""The `hooks` commands (install, uninstall, check, print), and `uninstall` for everything."""

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
    print_json,
    reason,
    warn,
)

if TYPE_CHECKING:
    from ..agents.claude_code.installer.change import Change
    from ..agents.claude_code.installer.settings import Settings
    from ..agents.claude_code.version import Version

#: Everything that bellboard creates in the state folder.
STATE = (
    *("spool", "hosts", "answers", "board.db", "board.db-*", "board.db.damaged-*", "board.lock"),
    "drain.lock",
    *("emit", "hooks.json", "hooks.lock", "opencode"),
)


#: Agents whose own file is printed, to be put where they look for it.
REPORTING = ("codex", "opencode", "copilot", "qwen")


def add_to(commands: Commands) -> None:
    hooks = add(commands, "hooks", show_help, "manage the hooks in Claude Code's settings")
    hooks.set_defaults(top=hooks)
    verbs = hooks.add_subparsers(metavar="VERB", title="verbs")
    install = add(verbs, "install", install_hooks, "add the hooks, leaving all else as it is")
    uninstall = add(verbs, "uninstall", uninstall_hooks, "remove the hooks and nothing else")
    check = add(verbs, "check", check_hooks, "show where the hooks are; fails if any is missing")
    check.add_argument("--json", action="store_true", help="print JSON, and succeed")
    printed = add(verbs, "print", print_hooks, "print the hooks for claude --settings")
    printed.add_argument(
        "--agent", choices=REPORTING, help="print the file that lets this agent report"
    )
    for verb in (install, uninstall, check):
        which = verb.add_mutually_exclusive_group()
        which.add_argument("--user", action="store_true", help="user settings (default)")
        which.add_argument("--project", action="store_true", help="shared project settings")
        which.add_argument("--local", action="store_true", help="personal project settings")
        which.add_argument("--settings", metavar="FILE", help="another settings file")
    for verb in (install, uninstall):
        verb.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        verb.add_argument("--dry-run", action="store_true", help="print the diff and stop")
    for verb in (install, check, printed):
        verb.add_argument(
            "--cli",
            metavar="PATH|VERSION",
            help="use the events of this Claude Code (default: the one on PATH)",
        )
    remove = add(commands, "uninstall", uninstall_all, "remove the hooks from all settings files")
    remove.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    remove.add_argument(
        "--purge", action="store_true", help="also delete the state folder, and what is set in tmux"
    )


def show_help(args: Args) -> None:
    args.top.print_help()


def install_hooks(args: Args) -> None:
    from ..agents.claude_code.version import LATER

    settings, path, version = _settings(), _file(args), _version(args)
    with _problems(path):
        change = settings.put_in(path, version)
    if _do(settings, change, args.yes, args.dry_run) and change.is_none:
        print(f"the hooks are already in {_short(path)}")
    if version is None:
        later = ", ".join(name for names in LATER.values() for name in names)
        print(f"no claude on PATH to ask for its version: left out {later}; install again with it")
    if args.dry_run:
        return
    if args.project:
        print("this file is shared with the project; use --local for yourself only")
    for state in map(settings.check, settings.files(Path.cwd())):
        if state.plugin:
            print(f"{_short(state.path)} also enables the plugin; each event still counts once")


def uninstall_hooks(args: Args) -> None:
    settings, path = _settings(), _file(args)
    with _problems(path):
        change = settings.take_out(path)
    if _do(settings, change, args.yes, args.dry_run) and change.is_none:
        print(f"there are no bellboard hooks in {_short(path)}")


def check_hooks(args: Args) -> int:
    from ..agents.claude_code.installer import installed
    from ..agents.claude_code.witnesses.registry import config_of

    settings, version = _settings(), _version(args)
    named = args.user or args.project or args.local or args.settings
    paths = [_file(args)] if named else settings.files(Path.cwd())
    with _problems(settings.home):
        states = [settings.check(path, version) for path in paths]
    if args.json:
        has_some = any(state.events or state.plugin for state in states)
        is_there = version is not None or config_of(os.environ).is_dir()
        print_json({"v": 1, "installed": has_some, "claude": is_there})
        return 0
    for state in states:
        print(f"{_short(state.path)}: {state.summary()}")
    active = [state for state in states if state.is_complete or state.plugin]
    if not active or any(state.disabled for state in states):
        return 1
    script = installed.script(settings.home)
    if any(state.is_complete for state in active) and not script.is_file():
        print(f"{_short(script)} is missing; run `bellboard hooks install` to restore it")
        return 1
    return 0


def print_hooks(args: Args) -> None:
    import json

    settings = _settings()
    if args.agent:
        with _problems(settings.home):
            print(settings.reporting(args.agent).rstrip())
        return
    with _problems(settings.home):
        printed = settings.printed(_version(args))
    print(json.dumps(printed, indent=2, ensure_ascii=False))


def uninstall_all(args: Args) -> int:
    from ..agents.claude_code.installer.backups import backups

    settings = _settings()
    paths = settings.files(Path.cwd())
    failed = False
    for path in paths:
        try:
            with _problems(path):
                if settings.check(path).plugin:
                    print(f"{_short(path)} enables the plugin; claude plugin uninstall bellboard")
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
            print(f"kept: {settings.home}; `bellboard uninstall --purge` deletes both")
        return 0
    _purge(settings.home, copies, args.yes)
    return 0


def _do(settings: Settings, change: Change, yes: bool, dry_run: bool = False) -> bool:
    """Show a change and apply it; return False on a dry run."""
    if not change.is_none:
        # Hide control characters: a project's settings may come from anyone.
        shown = (c if c.isprintable() or c in "\n\t" else "\ufffd" for c in change.diff())
        print("".join(shown), end="")
    if dry_run:
        return False
    if not change.is_none:
        _ask(f"Write this to {_short(change.path)}?", yes)
    with _problems(change.path):
        backup = settings.apply(change)  # even with no change: it restores script and record
    if not change.is_none:
        done = "removed" if change.new is None else "written"
        print(f"{done}: {change.path}" + (f"; backup: {backup.name}" if backup else ""))
    return True


@contextlib.contextmanager
def _problems(path: Path) -> Iterator[None]:
    from ..agents.claude_code.installer.settings import SettingsError
    from ..storage.spool import Refused

    try:
        yield
    except SettingsError as e:
        raise Problem(str(e)) from None
    except Refused as e:
        raise Problem(f"{e}; set BELLBOARD_HOME to a folder that you own") from None
    except OSError as e:
        raise Problem(f"cannot write {path}: {reason(e, path)}; nothing was written") from None


def _purge(home: Path, copies: list[Path], yes: bool) -> None:
    """Delete what bellboard created in the state folder, and the folder if that empties it."""
    import shutil

    from ..storage.spool import Spool
    from .tmux import wired
    from .wiring import remove

    if not home.exists():
        return
    if hosts := list(Spool(home).hosts.alive()):
        pids = ", ".join(map(str, hosts))
        raise Problem(f"bellboard is still running: stop these processes first: {pids}")
    ours = [path for name in STATE for path in home.glob(name)]
    servers = wired()
    for path in (*ours, *copies):
        print(f"- {path}")
    for tmux in servers:
        print(f"- hooks, keys and status in the tmux server at {tmux.socket}")
    _ask("Delete these?", yes)
    for tmux in servers:
        remove(tmux)
    for path in (*ours, *copies):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if rest := sorted(path.name for path in home.iterdir()):
        print(f"kept: {home}, which also contains {', '.join(rest)}")
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
    from ..diagnosis.around import oldest_running

    found = version_of(args.cli, os.environ)
    if found is None and args.cli:
        raise Problem(f"--cli {args.cli}: not a version such as 2.1.328, nor a Claude Code")
    return found or oldest_running(os.environ)


def _ask(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Problem("nothing was changed: no terminal to ask for confirmation; use --yes")
    sys.stdout.flush()
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise Problem("nothing was changed")


def _short(path: Path) -> str:
    from ..core.words import plain, tilde

    return plain(tilde(str(path), os.environ.get("HOME", "")))
