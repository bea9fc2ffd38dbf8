"""The `uninstall` command: remove all hooks and, with --purge, everything that bellboard keeps."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from .arguments import Args, Subcommands, add
from .home import Problem, around, here, reason, warn
from .hooks import confirm, do, in_words, problems, short

#: Notes that Neovim asked or said something once, in its state folder: lua/bellboard/remembered.lua
REMEMBERED = {"hooks-asked", "build-declined", "statusline-told", "answers"}


def add_to(commands: Subcommands) -> None:
    remove = add(commands, "uninstall", uninstall_all, "remove the hooks from all settings files")
    remove.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    remove.add_argument(
        "--purge",
        action="store_true",
        help="also delete the state folder and the backups of the settings files, and remove what "
        "is set in tmux",
    )


def uninstall_all(args: Args) -> int:
    from ..agents.installing.installer import backups
    from ..agents.registry import installable
    from ..core.text import plain
    from ..storage.state_folder import stranger

    home = here()
    if args.purge:
        _check_unused(home)  # before anything is written
    installers = [cli.installer(home, os.environ) for cli in installable()]
    with problems(home):
        installers[0].recorded()  # otherwise some files would be left out
    files = [(each, path) for each in installers for path in each.files(around())]
    failed = False
    for installer, path in files:
        try:
            with problems(path):
                if installer.check(path).plugin:
                    print(f"{short(path)} enables the plugin; {installer.unplug}")
                change = installer.take_out(path)
            do(installer, change, args.yes)
        except Exception as e:  # still remove the hooks from the other files
            warn(f"{installer.cli.name}: {in_words(e)}")
            failed = True
    copies = [copy for _, path in files for copy in backups(path)]
    if failed:
        return 1
    if not args.purge:
        for copy in copies:
            print(f"kept: {plain(copy)}")
        if home.exists() and not stranger(home):
            print(f"kept: {home}; `bellboard uninstall --purge` deletes this too")
        return 0
    return 0 if _purge(home, copies, args.yes) else 1


def _check_unused(home: Path) -> None:
    """Raise Problem while the state folder is in use."""
    from ..storage.spool import Spool
    from ..storage.state_folder import stranger

    if not home.exists() or stranger(home):
        return
    if hosts := Spool(home).hosts.alive():
        pids = ", ".join(map(str, hosts))
        raise Problem(
            f"it is still running ({pids}): quit Neovim, or run "
            "`:Bellboard process stop` in it, and end each `bellboard serve`; then try again"
        )


def _purge(home: Path, copies: list[Path], yes: bool) -> bool:
    """Delete what bellboard created, and the state folder if that empties it.

    Return false if something could not be deleted.
    """
    from ..agents.registry import all_agents
    from ..core.text import plain
    from ..storage.state_folder import STATE, is_known, stranger
    from .shell import is_our_link, linked
    from .tmux import kept, wired
    from .wiring import remove_wiring

    _check_unused(home)  # a host may have started while the user was asked
    is_kept = home.exists() and bool(stranger(home))  # not a state folder of ours
    names = (*STATE, *(cli.keeps for cli in all_agents() if cli.keeps))
    found = () if is_kept else (path for name in names for path in home.glob(name))
    ours = dict.fromkeys(filter(is_known, found))
    ours |= dict.fromkeys(_remembered())
    with contextlib.suppress(Problem, OSError):  # no home, or not readable
        ours |= dict.fromkeys(place for place in [linked()] if is_our_link(place))
    servers = wired()
    left = [*kept()]
    is_empty = home.is_dir() and not any(home.iterdir())
    if not (ours or copies or servers or is_empty):
        print("\n".join(left) or "nothing of bellboard is left")
        return True
    for path in (*ours, *copies):
        print(f"- {plain(path)}")
    for tmux in servers:
        print(f"- hooks, keys and status in the tmux server at {tmux.socket}")
    confirm("Delete these?", yes)
    for tmux in servers:
        remove_wiring(tmux)
    stuck = [path for path in (*ours, *copies) if not _delete(path, home)]
    for line in left:
        print(line)
    rest = sorted(path.name for path in home.iterdir()) if home.exists() else []
    if rest:
        print(f"kept: {home}, which also contains {plain(', '.join(rest))}")
    elif home.exists():
        home.resolve().rmdir()
        if home.is_symlink():
            home.unlink()
    if not stuck:
        print("deleted; now remove the plugin")
    return not stuck


def _delete(path: Path, home: Path) -> bool:
    """Delete a file, or our files in a folder; report a failure."""
    import shutil

    from ..storage.state_folder import clear, is_known

    try:
        if path.parent == home and is_known(path):
            clear(path)
        elif path.is_dir() and not path.is_symlink() and path.parent != home:
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as e:
        warn(f"cannot delete {path}: {reason(e, path)}; delete it by hand")
        return False
    return True


def _remembered() -> Iterator[Path]:
    """Yield the notes of Neovim for any NVIM_APPNAME: folders, or single files beside others."""
    from ..storage.spool import Refused, user_state

    try:
        state = user_state(os.environ)
    except Refused:  # no HOME
        return
    own = state / (os.environ.get("NVIM_APPNAME") or "nvim") / "bellboard"  # may be NAME/NAME
    for folder in dict.fromkeys((own, *sorted(state.glob("*/bellboard")))):
        with contextlib.suppress(OSError):  # not there, or not readable
            if not (_is_own(folder.parent, stat.S_ISDIR) and _is_own(folder, stat.S_ISDIR)):
                continue  # it belongs to another user, or is a link
            inside = [*folder.iterdir()]
            notes = [path for path in inside if path.name in REMEMBERED and _is_note(path)]
            yield from [folder] if notes and len(notes) == len(inside) else notes


def _is_note(path: Path) -> bool:
    """Return whether a file is a note as Neovim makes it: empty."""
    return _is_own(path, stat.S_ISREG) and path.lstat().st_size == 0


def _is_own(path: Path, kind: Callable[[int], bool]) -> bool:
    """Return whether a path is of this kind, no link, and belongs to the user."""
    status = path.lstat()
    return kind(status.st_mode) and status.st_uid == os.geteuid()
