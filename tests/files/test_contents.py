"""A state folder that somebody uses for other things, and one that is ours but damaged.

BELLBOARD_HOME may name any folder of the user's.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from bellboard.agents.installing import hook_record
from bellboard.storage import machines, set_aside, state_folder
from bellboard.storage.machines import Mailbox
from bellboard.storage.spool import Refused, Spool
from bellboard.storage.store import Store
from bellboard.system import files
from rig import warm
from rig.home import Home
from rig.host.hosting import made, put
from rig.machines.ssh import set_followed

DEAD = "4194305"  # above any pid
#: What a folder may hold that is not ours, although some of it has names like ours.
OTHERS = [
    ("hosts/inventory.yml", "hosts/prod/x", "answers/quiz.txt"),
    ("hosts/5000/report", f"hosts/{DEAD}"),
    ("links/mine.txt",),
    ("spool/mail/me",),
    (".bashrc",),
    ("hooks.json", "config.toml"),  # another program's hooks
    ("opencode/src/index.ts",),
    ("opencode/1",),
]


@pytest.fixture(params=OTHERS, ids=lambda names: names[0])
def others(home: Home, request: pytest.FixtureRequest) -> Path:
    """Return a folder in the place of the state folder, with these files."""
    for name in request.param:
        path = home.bellboard / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    for path in (home.bellboard, *home.bellboard.rglob("*")):
        path.chmod(0o755)
    return home.bellboard


def seen(folder: Path) -> dict[str, int]:
    """Return all that is in a folder, with modes."""
    return {str(path): path.lstat().st_mode for path in (folder, *folder.rglob("*"))}


def test_a_folder_with_other_files_is_refused_and_not_changed(others: Path) -> None:
    """A host once made it private, and emptied `hosts` and `answers` in it."""
    before = seen(others)
    with pytest.raises(Refused, match="is not bellboard's: it holds"):
        Spool(others).prepare()
    assert [] == Spool(others).hosts.alive()
    assert not state_folder.is_ours(others)
    with hook_record.changing(others) as known:
        known["/x"] = hook_record.HookedFile(["Stop"])
    assert before == seen(others)


def test_commands_change_nothing_in_a_folder_with_other_files(home: Home, others: Path) -> None:
    """Nor does one that deletes the state folder."""
    before = seen(others)
    for words, says in (
        (["list"], state_folder.ADVICE),
        (["doctor"], "is not bellboard's: it holds"),
        (["machine", "list"], state_folder.ADVICE),
        (["uninstall", "--purge", "--yes"], "which also contains"),
    ):
        done = warm.run(["-m", "bellboard", *words], env=home.env, cwd=home.project)
        assert says in done.stdout + done.stderr
        assert "internal error" not in done.stderr
        assert before == seen(others), words


def only(*names: str) -> Callable[[Path], None]:
    """Return a function that removes all but these from a state folder."""

    def remove(home: Path) -> None:
        for path in home.iterdir():
            if path.name not in names:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


def without_modes(home: Path) -> None:
    for path in (*home.rglob("*"), home):
        path.chmod(0)


@pytest.mark.parametrize(
    "damage",
    [
        *map(only, ("spool", "hosts", "answers", "links", "board.db", "hooks.json", "emit")),
        *(only("hooks.lock", "mine.txt"), only("board.db", "mine.txt"), only("spool", "mine.txt")),
        *map(only, state_folder.LOCKS),
        *(only("hosts", "answers", "links", "codes"), only("board.db.damaged-20260101-000000-000")),
        *(only(), only(".bellboard-new.7"), without_modes),
    ],
)
def test_a_folder_of_ours_is_never_refused(home: Home, damage: Callable[[Path], None]) -> None:
    """Any rest of a state folder counts: an event, a machine or the socket of a plugin."""
    spool = made(home.bellboard)
    Store(home.bellboard).close()
    name = put(spool, "PermissionRequest")
    spool.questions.keep(f"{spool.new}/{name}", name)
    os.mkfifo(home.bellboard / "answers" / "7.1")
    (home.bellboard / "answers" / "7.1.taken").touch()
    (home.bellboard / "answers" / f"{name}.answer").touch()
    spool.hosts.announce(os.getpid())
    set_followed(home.bellboard, {"dev": ["ssh", "dev"]})
    Mailbox(home.bellboard, "dev").ask({"a": 1})
    machines.lend(home.bellboard, ".fleet")
    hook_record.keep_script(home.bellboard)
    for lock in state_folder.LOCKS:
        (home.bellboard / lock).touch()
    (home.bellboard / "codes").mkdir()  # of a plugin that listens there
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.bellboard / "codes/7"))
    for file in ("hooks.json", "mine.txt", "board.db.damaged-20260101-000000-000"):
        (home.bellboard / file).touch()
    (home.bellboard / ".bellboard-new.7").touch()  # of a process that was killed
    damage(home.bellboard)
    Spool(home.bellboard).prepare()
    assert state_folder.is_ours(home.bellboard)
    assert put(Spool(home.bellboard), "Stop") in Spool(home.bellboard).scan()


@pytest.mark.parametrize(
    "name", ["lost+found/", ".DS_Store", "links/dev/.nfs0000000001", ".Trash-1000/", "Icon\r"]
)
def test_what_a_system_puts_into_any_folder_does_not_count(home: Home, name: str) -> None:
    """Such files are no reason to refuse the folder, and are never removed."""
    path = home.bellboard / name
    path.parent.mkdir(parents=True)
    path.mkdir() if name.endswith("/") else path.touch()
    made(home.bellboard)
    done = warm.run(["-m", "bellboard", "uninstall", "--purge", "--yes"], env=home.env)
    assert 0 == done.returncode, done.stderr
    assert [home.bellboard / name.partition("/")[0]] == [*home.bellboard.iterdir()]
    assert path.exists()


@pytest.mark.parametrize("made_so_far", range(4))
def test_a_folder_whose_host_was_killed_while_it_made_it_is_not_refused(
    home: Home, made_so_far: int
) -> None:
    for name in ("", "spool", "spool/tmp", "spool/new")[: made_so_far + 1]:
        (home.bellboard / name).mkdir(exist_ok=True)
    Spool(home.bellboard).prepare()


def test_every_name_that_is_written_is_known(home: Home) -> None:
    """Names of hooks, lines and slots are known, too."""
    env = {**home.env, "BELLBOARD_HOME": str(home.bellboard)}
    spool = made(home.bellboard)
    for event in ("Stop", "PreToolUse"):
        assert 0 == os.spawnve(
            os.P_WAIT, hook_record.shipped(), ["emit", event, "7", "x", "{}"], env
        )
    spool.write({"t": 1.0, "tick": {}})
    spool.write({"t": 1.0, "tick": {}}, "key")
    spool.claim_slots()
    names = spool.scan()
    assert 4 == len(names)
    assert [] == [name for name in names if not state_folder.is_event(name)]
    spool.set_aside(names[0], "junk")
    aside = [path.name for path in (home.bellboard / "spool/bad").iterdir()]
    assert 2 == sum(state_folder.is_refused(name) is not None for name in aside)


def test_every_name_in_the_folder_is_known_to_a_purge(home: Home) -> None:
    """Whichever file names it: what is opened there, set aside, or left by a killed process."""
    made(home.bellboard)
    for name in (*state_folder.FILES, f"{files.PREFIX}7"):
        (home.bellboard / name).touch()
    board = home.bellboard / state_folder.DATABASE
    assert set_aside.set_database_aside(home.bellboard, board.stat().st_ino)
    machines.prepare(home.bellboard, "dev")
    written = {*home.bellboard.iterdir()}
    assert [] == [path.name for path in written if not state_folder.is_known(path)]
    assert set() == written - {x for name in state_folder.STATE for x in home.bellboard.glob(name)}
    assert 4 == sum(".damaged-" in path.name for path in written)


def test_outside_the_spool_what_has_other_names_is_never_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the folder is ours: somebody keeps files there as well."""
    spool = made(home.bellboard)
    machines.prepare(home.bellboard, "dev")
    names = ("hosts/inventory.yml", "hosts/5000/x", "answers/quiz.txt", "answers/1", "board.db-old")
    names += ("links/dev/mine", "links/dev/ask/mine", "links/mine.txt", "links/other/fleet")
    names += ("spool/tmp/two words", "spool/bad/1.txt", "board.db.damaged-mine", "opencode/src/x")
    for name in names:
        (path := home.bellboard / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
        os.utime(path, (1, 1))
    monkeypatch.setattr("bellboard.storage.answers.KEPT_AGE", -1.0)
    monkeypatch.setattr("bellboard.storage.answers.KEPT_FILES", 0)
    monkeypatch.setattr("bellboard.storage.set_aside.FILES", 0)
    monkeypatch.setattr("bellboard.storage.set_aside.MOST_ASIDE", 0)
    spool.hosts.alive()
    spool.questions.drop_all_but(())
    spool.questions.drop_oldest()
    spool.sweep()
    for name in [put(spool, "Stop") for _ in range(30)]:
        spool.set_aside(name, "junk")
    spool.finish()
    [*Mailbox(home.bellboard, "dev").take()]
    machines.regain(home.bellboard)
    machines.forget(home.bellboard, "dev")
    assert [] == [name for name in names if not (home.bellboard / name).is_file()]
    done = warm.run(["-m", "bellboard", "uninstall", "--purge", "--yes"], env=home.env)
    assert "which also contains answers, " in done.stdout
    kept = {str(p.relative_to(home.bellboard)) for p in home.bellboard.rglob("*") if p.is_file()}
    assert kept == {x for x in names if not x.startswith("spool/")} - {"links/other/fleet"}


def test_a_file_that_is_gone_meanwhile_stops_no_purge(home: Home) -> None:
    """The files of a database come and go while the user reads what will be deleted."""
    gone = home.bellboard / "board.db-wal"
    assert not state_folder.is_known(gone)
    state_folder.clear(gone)
