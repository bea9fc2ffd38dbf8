"""Settings files on disk: our hooks go into those of every CLI and out again, or are refused."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bellboard.agents.agent import Agent
from bellboard.agents.claude.installer import project_file
from bellboard.agents.installing.hook_record import hooked_files
from bellboard.agents.installing.installer import FileChange, SettingsError, backups
from bellboard.agents.registry import agent_of, installable
from bellboard.system import files
from rig.home import Home
from rig.host.settings_files import ANY, comments_in, looked
from rig.shell import run

CLIS = installable()
SHARED = [cli for cli in CLIS if cli.hooks and not cli.hooks.own]
STRICT = [cli for cli in SHARED if cli.hooks and not cli.hooks.comments]
OWN = [cli for cli in CLIS if cli.hooks and cli.hooks.own]
THEIRS = {"Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "say done"}]}]}
every_cli = pytest.mark.parametrize("cli", CLIS, ids=lambda cli: cli.key)


def is_refused(cli: Agent, text: str | None) -> bool:
    """Return whether our hooks do not belong into a file with this JSON, or JSON with comments."""
    is_own, are_comments_allowed = cli in OWN, cli not in STRICT
    return bool((text or "").strip()) if is_own else bool(comments_in(text)) > are_comments_allowed


@every_cli
@given(text=ANY, mode=st.sampled_from([0o644, 0o640, 0o600]), is_linked=st.booleans())
@example(None, 0o644, False)
@example(None, 0o644, True)
@example(json.dumps({"hooks": THEIRS}), 0o640, True)
@example(json.dumps({"hooks": THEIRS}).replace("say done", "/x/emit Stop $PPID"), 0o644, False)
@example(json.dumps({"a": [1], "hooks": {"SessionStart": [], **THEIRS}}, indent="\t"), 0o600, False)
@example(
    json.dumps({"hooks": THEIRS}).replace("say done", f"/{'/' * 9000}x Stop $PPID"), 0o644, False
)
@example("// nothing yet", 0o644, False)
def test_any_file_of_any_cli_is_restored(
    cli: Agent, text: str | None, mode: int, is_linked: bool
) -> None:
    """A link may dangle; a missing file may need folders."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        work = cli.installer(home / "board", {"HOME": str(home)})
        path = work.user_file()
        if is_linked:
            path.parent.mkdir(parents=True)
            path.symlink_to(home / "dotfiles/of/cli")
        if text is not None:
            write(path, text, mode)
        before = looked(home)
        if is_refused(cli, text):
            with pytest.raises(SettingsError, match=re.escape(str(path))):
                work.put_in(path)
            assert cli not in OWN or work.take_out(path).is_none
            assert looked(home) == before
            return
        for _ in range(2):
            work.apply(work.put_in(path))
        assert work.check(path).is_whole
        assert work.put_in(path).is_none
        work.apply(work.take_out(path))
        assert hooked_files(work.home) == {}
        for copy in backups(path):
            assert stat.S_IMODE(copy.stat().st_mode) == mode
            copy.unlink()
        assert looked(home) == before


def write(path: Path, text: str, mode: int) -> None:
    """Write a file of another group, where that is possible."""
    target = files.target_of(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode(errors="replace"))
    target.chmod(mode)
    if os.geteuid() == 0:
        os.chown(target, 12, 34)


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from(["", "added\n", "x\ny\n"]))
def test_a_diff_is_that_of_the_whole_file(head: int, tail: int, added: str) -> None:
    """Only a part of a large file is compared."""
    before, after = (list(map("{}\n".format, numbers)) for numbers in (range(head), range(tail)))
    old, new = (before + middle + after for middle in (["removed\n"], added.splitlines(True)))
    change = FileChange(Path("x"), "".join(old).encode(), "".join(new).encode(), (), {})
    assert change.diff() == "".join(difflib.unified_diff(old, new, "x", "x"))


# ---------------------------------------------------------------- refused


class Refused(NamedTuple):
    """A file that is not changed."""

    file: str | bytes | Callable[[Path], Any]  # its content, or what is done to it
    says: str
    clis: Sequence[Agent] = SHARED
    asked: Sequence[str] = ("hooks install --yes --project",)  # with such a file in a repository


READ = ("hooks check --project", "uninstall --yes --purge", "doctor")
KEY = '"\x9b2J\x9d0;x\x9c\u202egnp"'
LONG = f'{{"hooks": {{"Stop": [{{"matcher": {"9" * 5000}, "hooks": [{{"command": "x"}}]}}]}}}}'
#: A name, a file, and a part of the refusal.
REFUSED = {
    "read-only": Refused(lambda path: path.chmod(0o400), "is read-only", CLIS),
    "a folder": Refused(lambda path: (path.unlink(), path.mkdir()), "is not a file", CLIS),
    "a FIFO": Refused(lambda path: (path.unlink(), os.mkfifo(path)), "is not a file", CLIS),
    "a hard link": Refused(lambda path: os.link(path, f"{path}2"), "has a hard link", CLIS),
    "a loop": Refused(lambda path: (path.unlink(), path.symlink_to(path)), "cannot write", CLIS),
    "1 GB": Refused(lambda path: os.truncate(path, 1 << 30), "cannot read", CLIS),
    "UTF-16": Refused(b"\xff\xfe{}", "line 1: not UTF-8", CLIS),
    "Latin-1": Refused(b'{"a":\n"\xff"}', "line 2: not UTF-8", CLIS),
    "NUL": Refused("\0" * 100, "line 1: expecting a value"),
    "a comment": Refused('{\n  // mine\n  "a": 1\n}', "line 2: JSON does not allow", STRICT),
    "/* */": Refused('{"a": 1 /* why */}', "line 1: JSON does not allow comments", STRICT),
    "a last comma": Refused('{\r\n"a": 1,\r\n}', "line 2: trailing comma"),
    "a last comma in a list": Refused('{"a": [1,\n]}', "line 1: trailing comma"),
    "NaN": Refused('{"a": NaN}', "line 1: NaN is not JSON"),
    "infinity": Refused('{"a": -Infinity}', "line 1: -Infinity is not JSON"),
    "a key twice": Refused('{"a": 1,\n"b": 2,\n"a": 3}', 'line 3: duplicate key "a"'),
    "a key twice, inside": Refused('{"a": {"b": 1, "b": 2}}', 'line 1: duplicate key "b"'),
    "a key twice, escaped": Refused('{"a": {"b": 1,\r"\\u0062": 2}}', "line 2: duplicate key"),
    "hooks twice": Refused('{"hooks": 1, "hooks": {}}', 'line 1: duplicate key "hooks"'),
    "01": Refused('{"a": 01}', "line 1: expecting ',' delimiter, not 1"),
    "single quotes": Refused("{'a': 1}", "enclosed in double quotes"),
    "no colon": Refused('{"a" 1}', "line 1: expecting ':' delimiter"),
    "no comma": Refused('{"a": 1 "b": 2}', "line 1: expecting ',' delimiter"),
    "a line break": Refused('{"a": "b\nc"}', "line 1: invalid control character"),
    "half": Refused('{"a": 1', "line 1: unexpected end of file"),
    "two": Refused('{"a": 1}\n{"a": 1}', "line 2: unexpected text after the end"),
    "deep, half": Refused("[" * 300, "line 1: unexpected end of file"),
    "deep": Refused("[" * 100_000, "line 1: more levels than can be read"),
    "a list": Refused("\n[]", "the file is a list, expected an object"),
    "hooks in a string": Refused('{"hooks": "no"}', "hooks is a string, expected an object"),
    "no hooks": Refused('{"hooks": {"X": null}}', "hooks.X is true, false or null, expected"),
    "hooks by name": Refused('{"hooks": {"Stop": {}}}', "hooks.Stop is an object, expected"),
    "a list of numbers": Refused('{"hooks": {"X": [1]}}', "hooks.X[0] is a number"),
    "a number": Refused('{"hooks": {"X": [{"hooks": 1}]}}', "hooks.X[0].hooks is a number"),
    "control characters": Refused(f"{{{KEY}: [], {KEY}: []}}", "duplicate key", asked=READ),
    "5,000 digits": Refused(LONG, "line 1: a value that is too long to read", asked=READ),
    **{
        f"where ours would be: {text}": Refused(text, "it is not a file of bellboard", OWN, ())
        for text in (
            *("{}", "x", "[1]", '{"hooks": {}}', "{" * 500, json.dumps({"hooks": THEIRS})),
            *(f'{{"hooks": {{"a": {odd}}}}}' for odd in ('["x"]', "[null]", "[[]]", '{"b": 1}', 1)),
        )
    },
}  # fmt: skip


def spoil(path: Path, refused: Refused) -> None:
    """Make a file that is refused."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    if callable(refused.file):
        refused.file(path)
    else:
        path.write_bytes(refused.file.encode() if isinstance(refused.file, str) else refused.file)


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_a_file_in_doubt_is_refused_with_the_reason_and_stays(home: Home, refused: Refused) -> None:
    """Nothing is written beside the file, and its text does not reach the terminal."""
    paths = [(cli, cli.installer(home.bellboard, home.env).user_file()) for cli in refused.clis]
    for path in (project_file(home.project), *(path for _, path in paths)):
        spoil(path, refused)
    before = looked(home.root)
    for cli, path in paths:
        work = cli.installer(home.bellboard, home.env)
        with pytest.raises(SettingsError) as refusal:
            work.put_in(path)
        assert str(path) in str(refusal.value) and refused.says in str(refusal.value)
        assert refused.says.startswith("cannot") or "nothing was written" in str(refusal.value)
        assert not work.check(path).is_whole
    for command in refused.asked:
        said = run(home, *command.split(), code=1)
        assert refused.says in " ".join(said.split())
        assert all(line.isprintable() for line in said.splitlines())
    assert looked(home.root) == before


# ---------------------------------------------------------------- a write that fails


@contextlib.contextmanager
def nothing_changes(home: Home, why: str) -> Iterator[None]:
    """A change fails; all files and the record of hooks are as before."""
    before = looked(home.root), hooked_files(home.bellboard)
    with pytest.raises((SettingsError, OSError), match=why):
        yield
    assert (looked(home.root), hooked_files(home.bellboard)) == before


@pytest.mark.parametrize("verb", ["put_in", "take_out"])
@every_cli
def test_a_change_meanwhile_is_not_overwritten(home: Home, cli: Agent, verb: str) -> None:
    """The CLI writes the file, too, when the user allows a tool permanently."""
    work = cli.installer(home.bellboard, home.env)
    path = work.user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    if cli in SHARED:
        path.write_text('{"model": "opus"}')
    if verb == "take_out":
        work.apply(work.put_in(path))
    change = getattr(work, verb)(path)
    path.write_text("{}\n")
    with nothing_changes(home, "has changed since"):
        work.apply(change)


@contextlib.contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file can become larger, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


#: The name of a file, its largest possible size, and why the write fails.
FAULTS = {
    "a full disk": ("other.json", 8192, "too large"),
    "a full disk, in new folders": ("one/two/other.json", 2048, "too large"),
    "a name too long for a backup": ("s" * 240, 1 << 30, "too long"),
}


@pytest.mark.parametrize("verb", ["put_in", "take_out"])
@pytest.mark.parametrize(("name", "size", "why"), FAULTS.values(), ids=FAULTS)
def test_a_write_that_fails_leaves_nothing(
    home: Home, name: str, size: int, why: str, verb: str
) -> None:
    """No part of a file, no copy, no folder: later, it would pass for one that was there before."""
    work, path = agent_of("claude").installer(home.bellboard, home.env), home.root / name
    work.apply(work.put_in(work.user_file()))
    if verb == "take_out":
        work.apply(work.put_in(path))
        path.write_text(path.read_text().replace("{", f'{{"mine": "{"x" * 20_000}",', 1))
    elif "/" not in name:
        path.write_text(json.dumps({"mine": "x" * 20_000}))
    change = getattr(work, verb)(path)
    for _ in range(3):
        with nothing_changes(home, why), full_at(size):
            work.apply(change)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", ["claude", "opencode"])  # a file of the user; one of our own
def test_wherever_it_dies_the_file_is_the_old_or_the_new_one(tmp_path: Path, agent: str) -> None:
    """The next install works, and uninstall restores the file to the byte."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        script = Path(__file__).with_name("faulty_settings.py")
        command = [sys.executable, str(script), folder, agent]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_only_what_a_killed_process_left_is_removed(home: Home) -> None:
    """Another process may be writing a file there."""
    folder = home.project
    names = [f"{files.PREFIX}{pid}" for pid in (os.getppid(), os.getpid(), 4194305, "x")]
    for name in names:
        (folder / name).touch()
    assert files.replace(folder / "settings.json", b"{}", None)
    assert [path.name for path in folder.glob(f"{files.PREFIX}*")] == names[:1]


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
def test_an_attribute_that_cannot_be_copied_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as an access control list behind a label that only root may set."""
    path = tmp_path / "settings.json"
    path.write_text("{}")
    try:
        os.setxattr(path, "user.mine", b"1")
    except OSError:
        pytest.skip("a file system without attributes of users")
    monkeypatch.setattr(os, "listxattr", lambda path: ["security.label", "user.mine"])
    assert files.replace(path, b"[]", b"{}")
    assert os.getxattr(path, "user.mine") == b"1"


def test_the_last_three_backups_are_kept(home: Home) -> None:
    """Files with similar names are left alone."""
    work = agent_of("claude").installer(home.bellboard, home.env)
    file = work.user_file()
    beside = [file.with_name(f"{file.name}.bellboard-{name}") for name in ("mine", "20200101")]
    other = file.with_name("other.json.bellboard-20200101-000000")
    for path in (*beside, other):
        path.write_text("not ours")
    for n in range(5):
        file.write_text(json.dumps({"n": n}))
        work.apply(work.put_in(file))
        work.apply(work.take_out(file))
    kept = backups(file)
    assert 3 == len(kept)
    assert json.dumps({"n": 4}) == kept[-2].read_text()  # the state before the last change
    assert all(path.read_text() == "not ours" for path in (*beside, other))
