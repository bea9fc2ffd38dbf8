"""Repository, branch, worktree and remotes, from real and broken repositories."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.agents.trace_line import from_line
from bellboard.core.evidence import learned
from bellboard.core.session import Session
from bellboard.system.files import MayHang, stay_near
from bellboard.system.mounts import Mounts
from bellboard.witnesses.repository import Repository, config_in, facts_of, look_up, remote_in
from rig.home import Home
from rig.waiting import at_best


def of(directory: str) -> Repository | None:
    found = look_up(directory)
    return found.repository if found else None


URLS = {
    "https://github.com/owner/repo.git": ("owner/repo", "https://github.com/owner/repo"),
    "https://github.com//owner/repo": ("owner/repo", "https://github.com/owner/repo"),
    "https://www.github.com/owner/repo/": ("owner/repo", "https://github.com/owner/repo"),
    "git@github.com:owner/repo.git": ("owner/repo", "https://github.com/owner/repo"),
    "git@github.com:/owner/repo": ("owner/repo", "https://github.com/owner/repo"),
    "ssh://git@ssh.github.com:443/owner/repo.git": ("owner/repo", "https://github.com/owner/repo"),
    "git://github.com/owner/my.repo.git": ("owner/my.repo", "https://github.com/owner/my.repo"),
    "git@gitlab.com:group/sub/team/repo.git": (
        "group/sub/team/repo",
        "https://gitlab.com/group/sub/team/repo",
    ),
    "https://gitlab.com/group/sub/repo": ("group/sub/repo", "https://gitlab.com/group/sub/repo"),
    "git@bitbucket.org:owner/repo.git": ("owner/repo", "https://bitbucket.org/owner/repo"),
    "https://me@bitbucket.org/owner/repo.git": ("owner/repo", "https://bitbucket.org/owner/repo"),
    "https://git.example.org:8443/scm/PROJ/repo.git": (
        "PROJ/repo",
        "https://git.example.org:8443/scm/PROJ/repo",
    ),
    "ssh://git@git.example.org:2222/owner/repo.git": (
        "owner/repo",
        "https://git.example.org/owner/repo",
    ),
    "ssh://git@[2001:db8::1]:22/owner/repo": ("owner/repo", "https://[2001:db8::1]/owner/repo"),
    "http://git.example.org/owner/repo": ("owner/repo", "http://git.example.org/owner/repo"),
    "work:owner/repo.git": ("owner/repo", "work:owner/repo"),
    "https://dev.azure.com/org/project/_git/repo": (
        "org/project/repo",
        "https://dev.azure.com/org/project/_git/repo",
    ),
    "https://oauth2:glpat-0123456789abcdef0123@gitlab.com/owner/repo.git": (
        "owner/repo",
        "https://gitlab.com/owner/repo",
    ),
    "https://me:p@ss@example.org/owner/repo": ("owner/repo", "https://example.org/owner/repo"),
    "https:/me:secret@example.org/owner/repo": (
        "example.org/owner/repo",
        "https:example.org/owner/repo",
    ),
    "/srv/git/repo.git": ("repo", "/srv/git/repo.git"),
    "file:///srv/git/repo/.git": ("repo", "/srv/git/repo"),
    "../repo": ("repo", "../repo"),
    "https://example.org/my%20repo.git?x=1#y": ("my repo", "https://example.org/my repo"),
}


@pytest.mark.parametrize(("url", "expected"), URLS.items(), ids=str)
def test_a_remote_gives_owner_and_name_without_credentials(
    url: str, expected: tuple[str, str]
) -> None:
    remote = remote_in(url)
    assert remote is not None
    name = "/".join(x for x in (remote.owner, remote.name) if x)
    assert expected == (name, remote.address)


@pytest.mark.parametrize(
    "url", ["", "/", "https://", "https://github.com", "git@github.com:", ".git"]
)
def test_an_invalid_url_is_not_taken_for_a_remote(url: str) -> None:
    """And nothing is raised."""
    assert remote_in(url) is None


def test_a_configuration_is_read_as_git_reads_it() -> None:
    """Quotes, escapes, comments, continuation lines, several URLs, host aliases."""
    config = config_in(
        '[core]\n\turl = no\n[remote "a \\"b\\""] url="https://x.org/o/a#1" ; comment\n'
        "[Remote.old]\n\tURL = gh:o/r \\\n  \n\tpushurl = git@y.org:o/r\n url = https://second\n"
        '[url "git@github.com:"]\n insteadOf = gh:\n[branch "topic"]\n\tremote = old\n'
        "[broken\nurl = https://x.org/o/never\n= \n"
    )
    assert {'a "b"': "https://x.org/o/a#1", "old": "git@github.com:o/r"} == config.remotes
    assert {"topic": "old"} == config.upstreams


def git(home: Home, *arguments: str, cwd: Path | None = None) -> None:
    """Run git without any user configuration."""
    who = {
        f"GIT_{w}_{k}": "x@example.org" for w in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")
    }
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", *arguments],
        cwd=cwd or home.project,
        env={**home.env, **who, **quiet},
        check=True,
        capture_output=True,
    )


@pytest.fixture
def project(home: Home) -> Path:
    """Make a repository with one commit on main, and two remotes."""
    git(home, "init", "-q", "-b", "main")
    git(home, "commit", "-q", "--allow-empty", "-m", "first")
    git(home, "remote", "add", "fork", "git@gitlab.com:me/repo.git")
    git(home, "remote", "add", "origin", "https://token:x@github.com/owner/repo.git")
    return home.project


def test_a_subdirectory_gives_repository_branch_and_remotes(home: Home, project: Path) -> None:
    """Evidence reads the same line; credentials are left out."""
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    s = Session(session_id="s1")
    line, key = learned(12.0, s, facts_of(look_up(str(below))), of=str(below))
    expected = {
        "session_id": "s1",
        "repository": "owner/repo",
        "branch": "main",
        "worktree": "",
        "remote": "https://github.com/owner/repo",
        "remotes": ["fork https://gitlab.com/me/repo", "origin https://github.com/owner/repo"],
    }
    assert {"t": 12.0, "facts": expected, "cwd": str(below)} == line
    assert "token" not in key
    event = from_line(line)
    assert ("facts", expected) == (event.kind, event.settings)


def test_a_change_of_branch_is_seen(home: Home, project: Path) -> None:
    """So is the change back."""
    known = None
    for branch in ("main", "topic/a", "main"):
        git(home, "checkout", "-q", "-B", branch)
        known = look_up(str(project), known)
        assert known is not None
        assert f"{project}/.git/HEAD" == known.repository.head
        assert branch == known.repository.branch
    git(home, "checkout", "-q", "--detach")
    known = look_up(str(project), known)
    assert known is not None
    assert 8 == len(known.repository.branch)


def test_unchanged_files_are_not_read_again(project: Path) -> None:
    """The same object is returned until a file changes."""
    known = look_up(str(project))
    assert known is not None
    assert known is look_up(str(project), known)


def test_a_worktree_belongs_to_its_main_repository(home: Home, project: Path) -> None:
    """With a name and a HEAD of its own; also the agent's own worktrees."""
    git(home, "worktree", "add", "-q", "-b", "side", "../elsewhere")
    git(home, "worktree", "add", "-q", "-b", "agent", ".claude/worktrees/fix")
    for place, name, branch in (
        (home.root / "elsewhere", "elsewhere", "side"),
        (project / ".claude" / "worktrees" / "fix", "fix", "agent"),
    ):
        found = of(str(place))
        assert found is not None
        assert ("owner/repo", name, branch) == (found.name, found.worktree, found.branch)
        assert f"{project}/.git/worktrees/{name}/HEAD" == found.head


def test_an_agents_worktree_unknown_to_git_is_named_by_its_path(project: Path) -> None:
    place = project / ".claude" / "worktrees" / "gone" / "src"
    found = of(str(place))
    assert found is not None
    assert ("owner/repo", "gone", "main") == (found.name, found.worktree, found.branch)


def test_without_a_remote_it_is_named_after_its_folder(home: Home) -> None:
    """So is a worktree of it, and a worktree of a bare repository."""
    git(home, "init", "-q", "-b", "main")
    git(home, "commit", "-q", "--allow-empty", "-m", "first")
    git(home, "worktree", "add", "-q", "../side")
    git(home, "clone", "-q", "--bare", ".", "../bare.git")
    git(home, "remote", "remove", "origin", cwd=home.root / "bare.git")
    git(home, "worktree", "add", "-q", "../of-bare", cwd=home.root / "bare.git")
    names = [
        (f.name, f.worktree)
        for p in ("project", "side", "of-bare")
        if (f := of(f"{home.root}/{p}"))
    ]
    assert [("project", ""), ("project", "side"), ("bare", "of-bare")] == names


def test_a_submodule_is_a_repository_of_its_own(home: Home, project: Path) -> None:
    """By its own remote."""
    inner = home.root / "inner"
    git(home, "init", "-q", "-b", "main", str(inner))
    git(home, "commit", "-q", "--allow-empty", "-m", "first", cwd=inner)
    git(home, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "lib")
    found = of(str(project / "lib"))
    assert found is not None
    assert ("inner", "", "main") == (found.name, found.worktree, found.branch)


BROKEN = {
    "an empty HEAD": ("HEAD", b""),
    "a binary HEAD": ("HEAD", bytes(range(256))),
    "a binary configuration": ("config", bytes(range(256)) * 40),
    "a huge configuration": ("config", b"#" * (2 << 20)),
    "a commondir into nowhere": ("commondir", b"\0\n../../../../../../nowhere"),
}


@pytest.mark.parametrize(("name", "data"), BROKEN.values(), ids=BROKEN)
def test_broken_files_raise_nothing(project: Path, name: str, data: bytes) -> None:
    """Readable parts are reported."""
    (project / ".git" / name).write_bytes(data)
    known = look_up(str(project))
    assert "repository" in facts_of(known)


ODD = ("/srv/a\0b", "/srv/" + "x" * 269, "/srv" + "/d" * 2500, "/srv/\ud800", "srv", "", "/srv/\n")


@pytest.mark.parametrize("directory", ODD, ids=ascii)
def test_a_directory_that_cannot_be_one_has_no_repository(directory: str) -> None:
    """Evidence may name any text; what has NUL, or is too long, is refused by the system."""
    assert of(directory) is None


def test_a_git_file_that_is_circular_or_a_pipe_is_ignored(home: Home) -> None:
    """No read hangs; the repository above counts."""
    (home.project / ".git").write_text("gitdir: .")
    assert of(str(home.project)) is None
    (home.project / ".git").unlink()
    os.mkfifo(home.project / ".git")
    assert of(str(home.project)) is None


def test_outside_of_any_repository_the_facts_are_empty(home: Home) -> None:
    """So earlier facts about the folder are withdrawn."""
    facts = {"repository": "", "branch": "", "worktree": "", "remote": "", "remotes": []}
    assert facts == facts_of(look_up(str(home.project)))
    assert of("relative") is None
    assert of("/no\0where") is None


def many(row: str) -> str:
    """Return a megabyte of such rows, each with its own number."""
    return "".join(f"{row.replace('#', str(n))}\n" for n in range(MEGABYTE // len(row)))[:MEGABYTE]


MEGABYTE = 1 << 20
LONG = {
    "blanks in a section": "[a" + " " * MEGABYTE,
    "sections of blanks": many("[a" + " " * 3900),
    "an open quote": '[remote "' + "x" * MEGABYTE,
    "backslashes": '[remote "' + "\\" * MEGABYTE,
    "continued rows": "\\\n" * (MEGABYTE // 2),
    "empty rows": "\n" * MEGABYTE,
    "one remote, often": many('[remote "a"]\nurl=b'),
    "remotes": many('[remote "#"]\nurl=b'),
    "remotes that are shortened": many('[url "#"]\ninsteadOf=x\n[remote "#"]\nurl=xx'),
    "branches": many('[branch "#"]\nremote=x'),
    "addresses of colons": many('[remote "#"]\nurl=' + ":" * 1990),
    "paths of colons": many('[remote "#"]\nurl=https://h/' + ":" * 1990),
    "hosts of digits": many('[remote "#"]\nurl=https://' + "1" * 1990 + "/a/b"),
    "addresses of @": many('[remote "#"]\nurl=' + "a@" * 990),
    "quotes": many('[remote "#"]\nurl=' + '"' * 3900),
    "escapes": many('[branch "#"]\nremote=' + "\\n" * 1900),
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_configuration_of_a_megabyte_is_read_in_a_moment(text: str) -> None:
    """With any content; one of 750 kB once took 15 s."""

    def read() -> float:
        began = time.process_time()
        for url in config_in(text).remotes.values():
            remote_in(url)
        return time.process_time() - began

    at_best(read, 0.2)


GIT = st.lists(
    st.sampled_from([*'[]"=;#@:/\\.~ \n', "remote", "url", "git@h:", "https://", "a:b@", "branch"])
    | st.text(max_size=2),
    max_size=30,
).map("".join)


@given(GIT)
def test_no_configuration_and_no_address_raises(text: str) -> None:
    """And no password is left in an address that is shown."""
    config_in(text)
    config_in(f'[remote "x"]\nurl = {text}')
    remote = remote_in(text)
    if remote is not None:
        assert remote.name
    told = remote_in(f"https://me:secret@example.org/{text}")
    assert told is None or "secret" not in str(told)


@pytest.mark.parametrize("name", [".git/HEAD", ".git/config", ".git/commondir"])
def test_a_link_into_a_mount_that_may_hang_is_not_followed(project: Path, name: str) -> None:
    """By a thread of the host, which would stay; another process looks there instead."""
    table, far = project.parent / "mountinfo", project.parent / "far"
    far.mkdir()
    table.write_text(f"36 35 0:36 / {far} rw - fuse.hung server rw\n")
    (project / name).unlink(missing_ok=True)
    (project / name).symlink_to(far / "x")
    met: list[str] = []

    def look() -> None:
        stay_near(Mounts(str(table)))
        try:
            look_up(str(project))
        except MayHang as where:
            met.append(str(where))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert met == [str(far)]
