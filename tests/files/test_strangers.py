"""Files that another user of this machine puts in our way are not read, written or run."""

from __future__ import annotations

import json
import os
import shutil
import stat
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bellboard.agents.claude.agent import ClaudeCode
from bellboard.agents.installing import hook_record, hookline
from bellboard.diagnosis import diagnose
from bellboard.storage import state_folder
from bellboard.storage.spool import Refused, Spool, default_home
from rig import ROOT, warm
from rig.host.hosting import made
from rig.waiting import PATIENCE

EMIT = ROOT / "hooks" / "emit"
ROOT = os.geteuid() == 0
USERS = 100  # the group of all users on some distributions
SHELLS = ("dash", "bash", "busybox sh", "zsh", "ksh", "mksh")
PAYLOAD = b'{"session_id":"s","hook_event_name":"Stop","prompt":"private"}'


@pytest.fixture(params=[shell for shell in SHELLS if shutil.which(shell.split()[0])] or ["sh"])
def shell(request: pytest.FixtureRequest) -> list[str]:
    return str(request.param).split()


@pytest.fixture
def stranger() -> int:
    """Return the id of another user; no account is needed."""
    if not ROOT:
        pytest.skip("only root can make what belongs to another user")
    return 54_321


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Make a sticky folder that anybody may write to, like /tmp."""
    path = Path(tempfile.mkdtemp(prefix="bb-", dir="/tmp")).resolve()
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path)


def owned(path: Path, by: int) -> None:
    """Give a path and its contents to the stranger."""
    os.chown(path, by, by, follow_symlinks=False)
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o777)
        for below in path.iterdir():
            owned(below, by)


def listing(path: Path) -> dict[str, tuple[int, int, int]]:
    """Return everything below a path, with attributes that a change, but no reading, alters."""
    found = {}
    for below in sorted([path, *path.rglob("*")]):
        status = below.lstat()
        found[str(below)] = (status.st_mode, status.st_size, status.st_mtime_ns)
    return found


def emit(shell: list[str], home: Path, event: str = "Stop", **env: str) -> None:
    done = subprocess.run(
        [*shell, str(EMIT), event, "1"],
        env={"PATH": os.environ["PATH"], "BELLBOARD_HOME": str(home), **env},
        input=PAYLOAD,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)


def a_home(home: Path, ours: Path, by: int) -> None:
    made(home)
    owned(home, by)


def a_link_to_theirs(home: Path, ours: Path, by: int) -> None:
    theirs = home.with_name("theirs")
    a_home(theirs, ours, by)
    home.symlink_to(theirs)
    owned(home, by)


def a_link_to_ours(home: Path, ours: Path, by: int) -> None:
    home.symlink_to(ours)
    owned(home, by)


def a_folder_above(home: Path, ours: Path, by: int) -> None:
    a_home(home, ours, by)


def a_spool(home: Path, ours: Path, by: int) -> None:
    made(home)
    owned(home / "spool", by)


def a_link_for_a_spool(home: Path, ours: Path, by: int) -> None:
    theirs = home.with_name("theirs")
    made(home)
    shutil.move(home / "spool", theirs)
    owned(theirs, by)
    (home / "spool").symlink_to(theirs)
    owned(home / "spool", by)


def a_folder_in_the_spool(home: Path, ours: Path, by: int) -> None:
    made(home)
    owned(home / "spool/tmp", by)


def a_link_in_the_spool(home: Path, ours: Path, by: int) -> None:
    theirs = home.with_name("theirs")
    theirs.mkdir()
    owned(theirs, by)
    made(home)
    (home / "spool/new").rmdir()
    (home / "spool/new").symlink_to(theirs)


PLANTED = (
    *(a_home, a_link_to_theirs, a_link_to_ours, a_folder_above, a_spool, a_link_for_a_spool),
    *(a_folder_in_the_spool, a_link_in_the_spool),
)


@pytest.fixture
def planted(
    request: pytest.FixtureRequest, open_place: Path, tmp_path: Path, stranger: int
) -> Path:
    """Make a home that a stranger has prepared."""
    above = open_place / "above"
    above.mkdir()
    home = (above if request.param is a_folder_above else open_place) / "home"
    request.param(home, made(tmp_path / "ours").home, stranger)
    if request.param is a_folder_above:
        os.chown(above, stranger, stranger)
        above.chmod(0o777)
    return home


@pytest.mark.parametrize("planted", PLANTED, indirect=True, ids=lambda p: p.__name__)
def test_the_hook_writes_nothing_for_strangers(
    shell: list[str], planted: Path, open_place: Path, tmp_path: Path
) -> None:
    """Neither into another user's folder nor through anything placed in the way."""
    before = listing(open_place) | listing(tmp_path)
    for event in ("Stop", "PreToolUse"):
        emit(shell, planted, event)
    assert before == listing(open_place) | listing(tmp_path)


@pytest.mark.parametrize("planted", PLANTED, indirect=True, ids=lambda p: p.__name__)
def test_hosts_and_commands_refuse_it_with_an_error(
    planted: Path, open_place: Path, tmp_path: Path
) -> None:
    """No file is created or opened; doctor reports it too."""
    before = listing(open_place) | listing(tmp_path)
    with pytest.raises(Refused):
        Spool(planted).prepare()
    env = {"PATH": os.environ["PATH"], "BELLBOARD_HOME": str(planted), "HOME": str(tmp_path)}
    for words in (
        ["list"],
        ["set", "s", "idle"],
        ["hooks", "install", "--yes", "--user"],
        ["serve"],
    ):
        done = warm.run(["-m", "bellboard", *words], env=env, cwd=tmp_path, timeout=PATIENCE)
        assert 1 == done.returncode, done
        said = done.stderr.splitlines()[-1]
        assert said.startswith("bellboard: "), said
        assert "set BELLBOARD_HOME to an empty folder of yours" in said, said
    assert before == listing(open_place) | listing(tmp_path)


#: An access control list that lets the stranger write: a version, then tag, rights and id of each.
LIST = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in ((1, 7, 2**32 - 1), (2, 7, 54_321), (4, 0, 2**32 - 1), (16, 7, 2**32 - 1))
)
LIST += struct.pack("<HHI", 32, 0, 2**32 - 1)


@pytest.mark.parametrize("how", ["a group of several users", "an access control list"])
def test_a_folder_that_others_may_write_to_through_a_group_is_refused(
    open_place: Path, stranger: int, how: str
) -> None:
    """The group of a folder is ours alone only if it is our own, and no list names others."""
    above = open_place / "above"
    above.mkdir()
    above.chmod(0o770)
    made(above / "private")  # root's group has no other members
    if how == "an access control list":
        try:
            os.setxattr(above, "system.posix_acl_access", LIST)
        except OSError as error:
            pytest.skip(f"no access control lists in /tmp: {error.strerror}")
    else:
        os.chown(above, 0, USERS)
        os.setegid(USERS)
    try:
        with pytest.raises(Refused, match=f"others may write to {above}"):
            Spool(above / "home").prepare()
    finally:
        os.setegid(0)


def test_a_script_that_is_not_ours_is_not_run(
    shell: list[str], open_place: Path, stranger: int, tmp_path: Path
) -> None:
    """The line in the settings names a path that another user could fill once it is free."""
    script, trace = open_place / "home/emit", tmp_path / "trace"
    script.parent.mkdir()
    line = hookline.hook_line(str(script), "Stop", "/nowhere")
    script.write_text(f"echo run >{trace}\n")
    subprocess.run([*shell, "-c", line], check=True, timeout=PATIENCE)
    assert trace.exists()
    trace.unlink()
    owned(script, stranger)
    subprocess.run([*shell, "-c", line], check=True, timeout=PATIENCE)
    assert not trace.exists()


def test_what_a_stranger_recorded_is_not_believed(
    open_place: Path, stranger: int, tmp_path: Path
) -> None:
    """A record of installed hooks names files that an uninstall would write to."""
    home, precious = made(open_place / "home").home, tmp_path / "precious"
    (home / "hooks.json").write_text(json.dumps({str(precious): {"events": ["Stop"]}}))
    assert [str(precious)] == [*hook_record.hooked_files(home)]
    owned(home, stranger)
    assert {} == hook_record.hooked_files(home)
    assert precious not in ClaudeCode().installer(home, {}).files(open_place)


# Without another user


def test_our_own_link_to_a_home_is_followed(shell: list[str], tmp_path: Path) -> None:
    """To where the user wants it, perhaps on another disk."""
    there = made(tmp_path / "there").home
    home = tmp_path / "home"
    home.symlink_to(there)
    Spool(home).prepare()
    emit(shell, home)
    assert 1 == len(Spool(home).scan())


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_everything_created_is_private(shell: list[str], tmp_path: Path, umask: int) -> None:
    """Folders 0700, parents too, and files 0600, whatever the umask."""
    before = os.umask(umask)
    try:
        spool = Spool(tmp_path / "a/b/bellboard")
        spool.prepare()
        spool.hosts.announce(1)
        spool.write({"t": 1.0, "tick": {}})
        emit(shell, spool.home)
        spool.set_aside(spool.scan()[0], "junk")
    finally:
        os.umask(before)
    for path in (tmp_path / "a").rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert len([p for p in spool.home.rglob("*") if p.is_file()]) >= 4


def test_a_folder_above_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    """Others could replace our home, unless the folder is sticky."""
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o777)
    with pytest.raises(Refused, match=r"others may write to .*above"):
        Spool(above / "home").prepare()
    assert [] == list(above.iterdir())
    said = [fact.text for fact in diagnose(above, {"PATH": ""}, tmp_path) if fact.level == "error"]
    assert not any("others may write" in text for text in said)
    (above / "home").mkdir()
    said = [fact.text for fact in diagnose(above / "home", {"PATH": ""}, tmp_path)]
    assert any("others may write to" in text for text in said), said
    above.chmod(0o1777)
    Spool(above / "home").prepare()


@pytest.mark.parametrize("name", state_folder.FILES)
def test_a_link_where_a_file_is_kept_is_refused(tmp_path: Path, name: str) -> None:
    """The link was put there while the home was open; its target is left as it is."""
    home = made(tmp_path / "home").home
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (home / name).symlink_to(precious)
    with pytest.raises(Refused, match="a link where a file belongs"):
        Spool(home).prepare()
    assert "precious" == precious.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", state_folder.FILES)
def test_a_file_of_another_user_is_refused_until_it_is_moved_away(
    tmp_path: Path, name: str
) -> None:
    """Such a file may be a trap, such as a database that its owner still writes to."""
    home = made(tmp_path / "home").home
    (home / name).write_text("")
    os.chown(home / name, 65534, 65534)
    with pytest.raises(Refused, match="belongs to another user"):
        Spool(home).prepare()
    (home / name).unlink()
    Spool(home).prepare()


def test_a_link_among_the_hosts_is_replaced(tmp_path: Path) -> None:
    """By a file of ours; a pipe too."""
    spool = made(tmp_path / "home")
    precious = tmp_path / "precious"
    (spool.home / "hosts/7").symlink_to(precious)
    os.mkfifo(spool.home / "hosts/8")
    for pid in (7, 8):
        spool.hosts.announce(pid)
        assert stat.S_ISREG((spool.home / f"hosts/{pid}").lstat().st_mode)
    assert not precious.exists()


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "HOME is not set"),
        ({"HOME": ""}, "HOME is not set"),
        ({"HOME": "", "XDG_STATE_HOME": "relative"}, "HOME is not set"),
        ({"HOME": "relative"}, "HOME is not an absolute path: relative"),
        ({"HOME": "/x", "BELLBOARD_HOME": "own"}, "BELLBOARD_HOME is not an absolute path: own"),
        ({"BELLBOARD_HOME": "/a\0b"}, "BELLBOARD_HOME is not an absolute path: /a\0b"),
        ({"XDG_STATE_HOME": "/a\0b"}, "XDG_STATE_HOME is not an absolute path: /a\0b"),
    ],
    ids=str,
)
def test_an_unusable_home_is_refused(environ: dict[str, str], why: str) -> None:
    """Naming the variable; never a folder of the project or one at the root."""
    with pytest.raises(Refused) as refused:
        default_home(environ)
    assert why == str(refused.value)


def test_without_a_home_the_hook_does_nothing(shell: list[str], tmp_path: Path) -> None:
    """Not in the current folder either."""
    with ExitStack() as stack:
        stack.callback(os.chdir, Path.cwd())
        os.chdir(tmp_path)
        made(tmp_path / ".local/state/bellboard")
        before = listing(tmp_path)
        emit(shell, Path(), HOME="")
        emit(shell, Path(), HOME=".")
        assert before == listing(tmp_path)
