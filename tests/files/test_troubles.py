"""Every command in every kind of trouble: one line and an exit code, within seconds."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bellboard.hosting.turn import SharedBoard
from bellboard.storage.spool import Spool
from bellboard.storage.store import Store
from rig import ROOT, warm
from rig.home import Home
from rig.host.hosting import made
from rig.machines.mounts import Mounts
from rig.waiting import leniency

LIMIT = 12.0  # seconds for one command; doctor gives up after six
COMMANDS = (
    *("list", "list --json", "list --ended", "status", "status --dir .", "history", "pick"),
    *("history --json", "history --notices", "explain s", "record", "replay trace", "replay none"),
    *("set s idle", "label s X", "name s n", "park s", "snooze s", "goto s", "goto --next"),
    *("doctor", "doctor --json", "hooks check", "hooks print", "tmux", "tmux --apply", "--help"),
    *("hooks install --yes --cli 2.1.330", "uninstall --yes", "forget nobody", "no-command"),
)
#: One command for each code path.
FEW = (
    *("list", "status", "history", "pick", "explain s", "record", "set s idle", "goto s"),
    *("doctor", "hooks check", "tmux --apply", "hooks install --yes --cli 2.1.330"),
    "uninstall --yes",
)
#: One for each way to write as well, where one stream is in trouble.
SOME = (*FEW, "history --json", "--help", "no-command")
#: Troubles that each command could meet in a way of its own.
MANY = (
    *("none", "rows that cannot be decoded", "rows of the wrong types"),
    *("a database without a table", "a folder that was removed"),
    *("stdout full", "stderr closed", "every stream closed"),
)
SAYS_IT = ("doctor", "hooks check", "status")  # on standard output, or by the exit code
AT_START = {"LC_ALL", "PYTHONUTF8"}  # what an interpreter reads as it starts
Answers = dict[str, dict[str, Any]]


@dataclass
class DamagedHome:
    """A home with one session, damaged in some way, in which commands run."""

    home: Home
    streams: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    cleanup: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def board(self) -> Path:
        return self.home.bellboard

    @property
    def env(self) -> dict[str, Any]:
        return self.home.env

    @property
    def database(self) -> Path:
        return self.board / "board.db"

    def sql(self, *statements: str) -> None:
        with contextlib.closing(sqlite3.connect(self.database)) as db, db:
            for statement in statements:
                db.execute(statement)

    def replace(self, path: Path, by: Callable[[Path], object]) -> None:
        """Replace something by something else."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        by(path)

    def powerless(self) -> None:
        """Drop capabilities, so that file modes apply to root."""
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                pytest.skip("as root this needs setpriv")
            self.before = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")

    def mount(self, *words: str, again: bool = False) -> None:
        mount = Mounts()
        mount(*words, at=self.board, again=again)
        self.cleanup.callback(mount.close)

    def run(self, commands: tuple[str, ...] = COMMANDS) -> Answers:
        """Run the commands; return their results."""
        told = "".join(json.dumps([c.split(), self.streams]) + "\n" for c in commands)
        argv = [str(ROOT / "tests/files/troubled.py"), str(LIMIT * leniency(1.0))]
        env = {k: os.fsdecode(v) for k, v in self.env.items() if v is not None}
        if self.before or AT_START & env.keys():
            env["PYTHONPATH"] = str(ROOT / "rplugin/python3")
            done = subprocess.run(
                [*self.before, sys.executable, *argv],
                env=env,
                cwd=self.home.project,
                input=told,
                capture_output=True,
                text=True,
            )
        else:
            done = warm.run(argv, env=env, cwd=self.home.project, input=told)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(commands), done.stderr
        return dict(zip(commands, answers, strict=True))


@pytest.fixture
def place(home: Home) -> Iterator[DamagedHome]:
    spool = made(home.bellboard)
    now = time.time()
    for n, (event, more) in enumerate(
        (
            ("SessionStart", {"cwd": "/w/api"}),
            ("UserPromptSubmit", {"prompt": "do it"}),
            ("PermissionRequest", {"tool_name": "Bash", "tool_input": {"command": "rm x"}}),
        )
    ):
        hook = {"session_id": "s", "hook_event_name": event, **more}
        spool.write({"t": now - 60 + n, "hook": hook, "origin": {"pid": 1}})
    store = Store(home.bellboard)
    SharedBoard(Spool(home.bellboard), store).turn(now)
    store.close()
    home.file("trace", '{"t":1,"tick":{}}\n')
    found = DamagedHome(home)
    with found.cleanup:
        yield found


Trouble = Callable[[DamagedHome], object]
TROUBLES: dict[str, Trouble] = {"none": lambda place: None}


def trouble(make: Trouble) -> Trouble:
    TROUBLES[make.__name__.replace("_", " ")] = make
    return make


def file(path: Path) -> None:
    path.write_text("in the way")


# The home


@trouble
def no_home(place: DamagedHome) -> None:
    shutil.rmtree(place.board)


@trouble
def a_home_that_is_a_file(place: DamagedHome) -> None:
    place.replace(place.board, file)


@trouble
def a_home_that_is_a_pipe(place: DamagedHome) -> None:
    place.replace(place.board, os.mkfifo)


@trouble
def a_home_that_leads_nowhere(place: DamagedHome) -> None:
    place.replace(place.board, lambda path: path.symlink_to("/nowhere/at/all"))


@trouble
def a_home_that_leads_to_itself(place: DamagedHome) -> None:
    place.replace(place.board, lambda path: path.symlink_to(path))


@trouble
def a_home_below_a_file(place: DamagedHome) -> None:
    place.env["BELLBOARD_HOME"] = str(place.home.file("file", "") / "below")


@trouble
def a_relative_home(place: DamagedHome) -> None:
    place.env["BELLBOARD_HOME"] = "relative"


@trouble
def an_empty_home(place: DamagedHome) -> None:
    place.env["BELLBOARD_HOME"] = ""


@trouble
def a_home_of_two_lines(place: DamagedHome) -> None:
    place.env["BELLBOARD_HOME"] = f"{place.home.root}/a\nb\x1b[31m"


@trouble
def a_home_that_is_no_text(place: DamagedHome) -> None:
    place.env["BELLBOARD_HOME"] = os.fsencode(place.home.root) + b"/\xff\xfe"


@trouble
def a_home_of_a_name_too_long(place: DamagedHome) -> None:
    place.env["BELLBOARD_HOME"] = "/" + "x" * 5000


@trouble
def no_HOME_at_all(place: DamagedHome) -> None:
    for name in ("HOME", "BELLBOARD_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"):
        place.env[name] = None


@trouble
def a_relative_HOME(place: DamagedHome) -> None:
    place.env.update(HOME="relative", BELLBOARD_HOME=None, XDG_STATE_HOME=None)


@trouble
def a_relative_XDG_STATE_HOME(place: DamagedHome) -> None:
    place.env.update(BELLBOARD_HOME=None, XDG_STATE_HOME="relative")


@trouble
def a_home_that_cannot_be_written(place: DamagedHome) -> None:
    place.powerless()
    place.board.chmod(0o500)


@trouble
def a_home_that_cannot_be_read(place: DamagedHome) -> None:
    place.powerless()
    place.board.chmod(0)


@trouble
def a_spool_that_cannot_be_read(place: DamagedHome) -> None:
    place.powerless()
    (place.board / "spool/new").chmod(0)


@trouble
def a_full_disk(place: DamagedHome) -> None:
    kept = place.home.root / "kept"
    shutil.move(place.board, kept)
    place.board.mkdir(mode=0o700)
    place.mount("-t", "tmpfs", "-o", "size=1M,mode=700", "none")
    shutil.copytree(kept, place.board, dirs_exist_ok=True)
    with contextlib.suppress(OSError), (place.board / "filler").open("wb", buffering=0) as filler:
        while filler.write(bytes(4096)):
            pass


@trouble
def a_disk_that_is_read_only(place: DamagedHome) -> None:
    (place.board / "answers").rmdir()  # as an older version left it
    place.mount("--bind", str(place.board))
    place.mount("-o", "remount,ro,bind", again=True)


# What is in it


@trouble
def a_spool_that_is_a_file(place: DamagedHome) -> None:
    place.replace(place.board / "spool", file)


@trouble
def junk_in_the_spool(place: DamagedHome) -> None:
    new = place.board / "spool/new"
    os.mkfifo(new / "pipe")
    (new / "folder").mkdir()
    (new / "no name").write_text("x")
    (new / "nothing").write_bytes(bytes(10))
    (new / "link").symlink_to(place.home.file("precious", "precious"))
    (new / "deep").write_text('{"t":1,"hook":' + "[" * 100_000)
    (new / os.fsdecode(b"\xff")).write_text("")
    place.replace(place.board / "spool/bad/refused.json", os.mkfifo)


@trouble
def junk_among_the_hosts(place: DamagedHome) -> None:
    hosts = place.board / "hosts"
    os.mkfifo(hosts / "1")
    for name in ("²", "9" * 100, "-1", "0", os.fsdecode(b"\xff")):
        (hosts / name).write_text("")
    (hosts / "5000").mkdir()


@trouble
def hosts_that_are_a_file(place: DamagedHome) -> None:
    place.replace(place.board / "hosts", file)


@trouble
def answers_that_are_a_file(place: DamagedHome) -> None:
    place.replace(place.board / "answers", file)


@trouble
def junk_among_the_answers(place: DamagedHome) -> None:
    answers = place.board / "answers"
    os.mkfifo(answers / "1.1")
    (answers / "1.1.taken").mkdir()
    (answers / os.fsdecode(b"\xff")).write_text("")
    (answers / "link").symlink_to(place.home.file("precious", "precious"))


@trouble
def a_damaged_database(place: DamagedHome) -> None:
    place.database.write_bytes(b"no database at all" * 999)


@trouble
def an_empty_database(place: DamagedHome) -> None:
    place.database.write_bytes(b"")


@trouble
def a_newer_database(place: DamagedHome) -> None:
    place.sql("PRAGMA user_version = 99")


@trouble
def a_newer_database_of_another_kind(place: DamagedHome) -> None:
    place.sql("PRAGMA user_version = 99", "DROP TABLE sessions")


@trouble
def a_database_without_a_table(place: DamagedHome) -> None:
    place.sql("DROP TABLE events")


@trouble
def rows_that_cannot_be_decoded(place: DamagedHome) -> None:
    place.sql("UPDATE sessions SET record = x'c1'", "UPDATE events SET event = x'c1'")


@trouble
def rows_of_the_wrong_types(place: DamagedHome) -> None:
    place.sql(
        "UPDATE sessions SET record = 'text', revision = 'x'",
        "UPDATE events SET rule = x'ff', why = x'ff', before = 7",
        "UPDATE transitions SET t = 'x', before = 7, why = x'ff'",
        "INSERT OR REPLACE INTO options VALUES ('config', x'c1', 1, 'x')",
    )


@trouble
def a_database_that_is_a_folder(place: DamagedHome) -> None:
    place.replace(place.database, Path.mkdir)


@trouble
def a_database_that_is_a_pipe(place: DamagedHome) -> None:
    place.replace(place.database, os.mkfifo)


@trouble
def a_database_that_leads_to_itself(place: DamagedHome) -> None:
    place.replace(place.database, lambda path: path.symlink_to(path))


@trouble
def a_database_that_cannot_be_read(place: DamagedHome) -> None:
    place.powerless()
    place.database.chmod(0)


@trouble
def a_lock_that_is_a_pipe(place: DamagedHome) -> None:
    place.replace(place.board / "board.lock", os.mkfifo)


def holding(name: str) -> Trouble:
    def make(place: DamagedHome) -> None:
        fd = os.open(place.board / name, os.O_RDWR | os.O_CREAT, 0o600)
        place.cleanup.callback(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)

    return make


TROUBLES["board.lock held by another"] = holding("board.lock")
TROUBLES["hooks.lock held by another"] = holding("hooks.lock")


@trouble
def pipes_where_files_are_kept(place: DamagedHome) -> None:
    for path in ("hooks.json", "hooks.lock", "emit"):
        place.replace(place.board / path, os.mkfifo)


@trouble
def folders_where_files_are_kept(place: DamagedHome) -> None:
    for path in ("board.lock", "hooks.json", "hooks.lock", "emit"):
        place.replace(place.board / path, Path.mkdir)


@trouble
def a_record_of_hooks_that_is_none(place: DamagedHome) -> None:
    (place.board / "hooks.json").write_text("[1]")


# What is around


@trouble
def a_locale_of_seven_bits(place: DamagedHome) -> None:
    place.env.update(LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")


@trouble
def no_terminal_and_odd_numbers(place: DamagedHome) -> None:
    place.env.update(TERM=None, COLUMNS="-3", LINES="x", TZ="no/zone", LC_ALL="xx_YY.none")


@trouble
def no_programs(place: DamagedHome) -> None:
    place.env["PATH"] = ""


@trouble
def an_odd_tmux(place: DamagedHome) -> None:
    place.env.update(TMUX="\n,,", TMUX_PANE="%x")


def hanging(name: str) -> Trouble:
    def make(place: DamagedHome) -> None:
        program = place.home.bin / name
        program.unlink(missing_ok=True)
        program.write_text("#!/bin/sh\nexec sleep 60\n")
        program.chmod(0o755)
        server = socket.socket(socket.AF_UNIX)
        place.cleanup.callback(server.close)
        server.bind(str(place.home.root / "sock"))
        server.listen()
        place.env["TMUX"] = f"{place.home.root}/sock,1,0"

    return make


TROUBLES["a claude that hangs"] = hanging("claude")
TROUBLES["a tmux that hangs"] = hanging("tmux")


@trouble
def settings_that_are_a_pipe(place: DamagedHome) -> None:
    os.mkfifo(place.home.claude / "settings.json")


@trouble
def settings_that_are_no_text(place: DamagedHome) -> None:
    (place.home.claude / "settings.json").write_bytes(b'{"hooks": [\xff')


@trouble
def settings_of_60_MB(place: DamagedHome) -> None:
    (place.home.claude / "settings.json").write_text(f'{{"x":"{"y" * (60 << 20)}"}}')


@trouble
def a_claude_folder_that_is_a_file(place: DamagedHome) -> None:
    place.replace(place.home.claude, file)


@trouble
def a_claude_folder_that_is_no_text(place: DamagedHome) -> None:
    place.env["CLAUDE_CONFIG_DIR"] = os.fsencode(place.home.root) + b"/\xff"


@trouble
def junk_among_the_session_files(place: DamagedHome) -> None:
    folder = place.home.claude / "sessions"
    folder.mkdir()
    os.mkfifo(folder / "12.json")
    (folder / "13.json").mkdir()
    (folder / "14.json").write_text("{")
    (folder / "².json").write_text("{}")


for _stream, _how in (
    *(("stdin", "closed"), ("stdout", "closed"), ("stderr", "closed")),
    *(("stdout", "full"), ("stdout", "broken"), ("stderr", "full"), ("stderr", "broken")),
):
    TROUBLES[f"{_stream} {_how}"] = lambda place, s=_stream, h=_how: place.streams.update({s: h})
TROUBLES["every stream closed"] = lambda place: place.streams.update(
    dict.fromkeys(("stdin", "stdout", "stderr"), "closed")
)
TROUBLES["a folder that was removed"] = lambda place: place.streams.update(folder="removed")
assert {*MANY} < TROUBLES.keys()


@pytest.mark.parametrize("name", TROUBLES)
def test_every_command_answers(place: DamagedHome, name: str) -> None:
    """A command shows its output or one line: never a traceback, never silence."""
    TROUBLES[name](place)
    commands = COMMANDS if name in MANY else SOME if place.streams else FEW
    for command, told in place.run(commands).items():
        about = f"{command}: {told}"
        assert told["code"] in (0, 1, 2), about
        assert "Traceback" not in told["err"], about
        assert "fault of bellboard" not in told["err"], about
        lines = [line for line in told["err"].splitlines() if line]
        if told["code"] < 2:
            assert all(line.startswith("bellboard: ") for line in lines), about
            assert all(line.isprintable() for line in lines), about
        if told["code"] == 1 and "stderr" not in place.streams:
            assert lines or command.startswith(SAYS_IT), about


SHOWN = (
    "a home that cannot be written",
    "a disk that is read only",
    "a full disk",
    "junk in the spool",
    "junk among the hosts",
    "board.lock held by another",
    "a newer database",
    "a locale of seven bits",
    "no programs",
)


@pytest.mark.parametrize("name", SHOWN)
def test_the_last_state_is_shown(place: DamagedHome, name: str) -> None:
    """The state is that before the trouble began."""
    TROUBLES[name](place)
    told = place.run(("list",))["list"]
    assert "api" in told["out"], told


#: What doctor must say of a trouble.
NAMED = {
    "folders where files are kept": "board.lock is not a file",
    "a home that is a file": "board",
    "a damaged database": "the database is damaged",
    "a newer database": "newer bellboard",
    "a database that is a folder": "is not a file",
    "a claude that hangs": "does not report its version",
    "settings that are a pipe": "settings.json",
    "a home that is no text": "does not exist yet",
    "a folder that was removed": "spool",
}


@pytest.mark.parametrize("name", NAMED)
def test_doctor_names_it(place: DamagedHome, name: str) -> None:
    """Within seconds, even if something hangs; the other sections are complete."""
    TROUBLES[name](place)
    began = time.monotonic()
    told = place.run(("doctor --json",))["doctor --json"]
    facts = json.loads(told["out"])["facts"]
    assert any(NAMED[name] in fact["text"] for fact in facts), facts
    assert {"versions", "state", "system"} <= {fact["section"] for fact in facts}
    assert time.monotonic() - began < LIMIT * leniency()


def test_ctrl_c_exits_silently(place: DamagedHome) -> None:
    """With exit code 130."""
    env = place.env | {"PYTHONPATH": str(ROOT / "rplugin/python3")}
    program = (
        "import os, signal, sys; from bellboard import cli; from bellboard.cli import sessions; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # ignored in the background
        "sessions.list_sessions.__globals__['opened'] = lambda: os.kill(os.getpid(), 2); "
        "sys.exit(cli.main(['list']))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert (130, "", "") == (done.returncode, done.stdout, done.stderr)


def test_an_internal_error_is_one_line(place: DamagedHome) -> None:
    """With a file that has the details, without secrets."""
    program = (
        "import sys; from bellboard import cli; from bellboard.cli import sessions\n"
        "def broken(): raise LookupError('TOKEN=hunter')\n"
        "sessions.list_sessions.__globals__['opened'] = broken\n"
        "sys.exit(cli.main(['list']))"
    )
    env = place.env | {"PYTHONPATH": str(ROOT / "rplugin/python3")}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert (1, "") == (done.returncode, done.stdout)
    [line] = done.stderr.splitlines()
    assert line.startswith("bellboard: internal error: LookupError('TOKEN=***")
    again = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert again.stderr == done.stderr  # a status bar may run into it every few seconds
    details = Path(line.rpartition(" ")[2])
    assert "broken" in details.read_text()
    assert "hunter" not in line + details.read_text()
    assert details.stat().st_mode & 0o777 == 0o600
