"""The hook, in every shell that may be /bin/sh, with any environment."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bellboard.agents.installing import hookline
from bellboard.storage import state_folder
from bellboard.storage.event_file import Item
from bellboard.storage.spool import Spool
from rig import ROOT
from rig.fetched import tools
from rig.machines.mounts import Mounts, unshared
from rig.waiting import PATIENCE, eventually

EMIT = ROOT / "hooks" / "emit"
SHELLS = {"dash": [], "bash": [], "busybox": ["sh"], "zsh": [], "own bash": [], "own zsh": []}
PAYLOAD = b'{"session_id":"s","hook_event_name":"Stop"}\n'
ROOT = os.geteuid() == 0


@pytest.fixture(params=[*SHELLS, *tools.MORE_SHELLS])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Return a shell as /bin/sh, or the user's own: bash and zsh behave differently as `sh`."""
    path = str(tools.executable(request.param.removeprefix("own ")))
    if request.param in ("bash", "zsh", *tools.MORE_SHELLS):
        (tmp_path / "as").mkdir()
        link = tmp_path / "as" / "sh"
        link.symlink_to(path)
        path = str(link)
    return [path, *SHELLS.get(request.param, [])]


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "state" / "bellboard")
    made.prepare()
    return made


def environment(home: Path | None, **more: str) -> dict[str, str]:
    env = {"PATH": os.environ["PATH"], **more}
    return env | ({"BELLBOARD_HOME": str(home)} if home else {})


def run(
    shell: list[str], *args: str, env: dict[str, str], payload: bytes = PAYLOAD
) -> subprocess.CompletedProcess[bytes]:
    """Run the hook; check that it printed nothing, exited with 0, and read its whole input."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [*shell, str(EMIT), *args],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
    )
    theirs.close()
    with ours:
        ours.sendall(payload)  # EPIPE if it ended without reading
        ours.shutdown(socket.SHUT_WR)
        out, err = process.communicate(timeout=PATIENCE)
        assert ours.recv(1) == b""  # ECONNRESET if something was left unread
    assert (process.returncode, out, err) == (0, b"", b"")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def events(spool: Spool) -> list[Item]:
    items = [spool.read(name) for name in spool.scan()]
    assert None not in items
    return [item for item in items if item]


def files(below: Path) -> list[Path]:
    return [path for path in below.rglob("*") if not path.is_dir()]


def test_an_event_arrives_whole(shell: list[str], spool: Spool) -> None:
    """The payload byte for byte, the origin field by field, private, and nothing else."""
    env = environment(
        spool.home,
        TMUX="/tmp/tmux,1000/default,4242,0",
        TMUX_PANE="%7",
        NVIM="/run/user/1000/nvim.1.0",
        CLAUDE_PROJECT_DIR="/srv/a b",
        CLAUDE_CODE_ENTRYPOINT="cli",
        SSH_CONNECTION="10.0.0.1 22 10.0.0.2 22",
    )
    run(shell, "Stop", "4711", env=env, payload=PAYLOAD + b"\xff\x01\n\n")
    [item] = events(spool)
    assert item.payload == PAYLOAD + b"\xff\x01\n\n"
    assert (item.kind, item.event, item.truncated) == ("hook", "Stop", False)
    assert item.origin == {
        "agent": "claude",
        "pid": 4711,
        "tmux": "/tmp/tmux,1000/default",
        "pane": "%7",
        "nvim": "/run/user/1000/nvim.1.0",
        "env": {
            "CLAUDE_PROJECT_DIR": "/srv/a b",
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "SSH_CONNECTION": "10.0.0.1 22 10.0.0.2 22",
        },
    }
    [file] = files(spool.home)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("line", ['{} Stop "$PPID"; exit 0', "set -- Stop; . {}"])
def test_the_pid_is_that_of_the_cli(shell: list[str], spool: Spool, line: str) -> None:
    """Run by a shell of its own as the CLI does, or sourced: $PPID is this process."""
    command = line.format(f"{' '.join(shell)} {EMIT}" if line.startswith("{}") else EMIT)
    env = environment(spool.home)
    done = subprocess.run(
        [*shell, "-c", command],
        env=env,
        input=PAYLOAD,
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    assert done.stdout + done.stderr == b""
    [item] = events(spool)
    assert item.origin is not None
    assert os.getpid() == item.origin["pid"]


def test_the_pid_handed_over_beats_an_inherited_one(shell: list[str], spool: Spool) -> None:
    """A CLI too old to set CLAUDE_PID may inherit one from the CLI it runs in."""
    run(shell, "Stop", "4711", env=environment(spool.home, CLAUDE_PID="12"))
    run(shell, "Stop", env=environment(spool.home, CLAUDE_PID="12"))
    assert {4711, 12} == {item.origin["pid"] for item in events(spool) if item.origin}


def test_another_agent_says_who_it_is(shell: list[str], spool: Spool) -> None:
    """By the third argument or by BELLBOARD_AGENT."""
    run(shell, "Stop", "1", "codex", env=environment(spool.home))
    run(shell, "Stop", env=environment(spool.home, BELLBOARD_AGENT="gemini"))
    assert {"codex", "gemini"} == {item.origin["agent"] for item in events(spool) if item.origin}


def test_it_forks_twice(shell: list[str], spool: Spool, tmp_path: Path) -> None:
    """cat and mv; everything else is built in. Counted by strace."""
    if sys.platform != "linux":
        pytest.skip("forks are counted by strace, which is for Linux")
    strace, log = str(tools.executable("strace")), tmp_path / "strace"
    spool.hosts.announce(os.getpid())
    calls = "trace=fork,vfork,clone,clone3,execve"
    run([strace, "-f", "-qq", "-o", str(log), "-e", calls, *shell], "PreToolUse", "77",
        env=environment(spool.home))  # fmt: skip
    lines = log.read_text().splitlines()
    forks = [line for line in lines if re.search(r" (v?fork|clone3?)\(", line)]
    assert len(forks) == 2, "\n".join(lines)
    assert len(events(spool)) == 1


HOSTILE = {
    "quotes": "a'b\"c`d",
    "commands": "$(touch pwned) `touch pwned` ; touch pwned & ${IFS}",
    "newlines": "one\npid=1\n\n{}\nagent=evil\n",
    "formats": "%s %n %d \\0 \\n \\c %%",
    "globs": "* ? [a-z] ~ -n --",
    "long": "x" * 100_000,
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_value_can_be_anything(
    shell: list[str], spool: Spool, value: str, tmp_path: Path
) -> None:
    """A value is never a command, a format, another field or the end of the header."""
    env = environment(spool.home, TMUX_PANE=value, CLAUDE_PROJECT_DIR=value, TERM_PROGRAM="last")
    run(shell, "Stop", "77", env=env | {"PWD": str(tmp_path)})
    [item] = events(spool)
    assert item.origin is not None
    assert (item.payload, item.event, item.origin["agent"]) == (PAYLOAD, "Stop", "claude")
    assert item.origin["pid"] == 77
    kept = value if len(value) < 4096 else None
    assert kept == item.origin.get("pane")
    expected = {"TERM_PROGRAM": "last"} | ({"CLAUDE_PROJECT_DIR": kept} if kept else {})
    assert expected == item.origin["env"]
    assert list(Path.cwd().glob("pwned")) + list(spool.home.rglob("pwned")) == []


def test_a_value_need_not_be_text(shell: list[str], spool: Spool) -> None:
    """Bytes that are not UTF-8 arrive as something that can be written everywhere."""
    env = {os.fsencode(k): os.fsencode(v) for k, v in environment(spool.home).items()}
    subprocess.run(
        [*shell, str(EMIT), "Stop"],
        env=env | {b"NVIM": b"/tmp/\xff\xfe"},
        input=PAYLOAD,
        check=True,
        timeout=PATIENCE,
    )
    [item] = events(spool)
    assert item.origin is not None
    assert item.origin["nvim"] == "/tmp/\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    "env",
    [
        {"SHELLOPTS": "errexit:nounset", "ENV": "/nowhere", "BASH_ENV": "/nowhere"},
        {"IFS": "/0123456789", "PS4": "$(touch pwned)", "CDPATH": "/"},
        {
            "home": "x",
            "spool": "x",
            "name": "x",
            "n": "x",
            "once": "x",
            "taken": "1",
            "written": "1",
            "new": "x",
        },
        {"PATH": ""},
        {"SHELLOPTS": "noglob:noclobber:allexport", "BASHOPTS": "failglob:nocasematch"},
        {"LANG": "xx_YY.UTF-8", "LINES": "\xff", "POSIXLY_CORRECT": "1"},
        {"ZSH_VERSION": "5", "RANDOM": "x", "CLAUDE_PID": "; exit 3"},
    ],
    ids=str,
)
def test_a_weird_environment_changes_nothing(
    shell: list[str], spool: Spool, env: dict[str, str]
) -> None:
    """Inherited shell options, IFS, and variables with the script's own names."""
    run(shell, "Stop", "77", env=environment(spool.home) | env)
    assert [(item.payload, item.event) for item in events(spool)] == [(PAYLOAD, "Stop")]


#: No inherited function can have these names: bash itself ends if it inherits one of the builtins.
NEVER = """
case do done elif else esac fi for if in then until while
break continue eval exec exit export readonly return set shift trap unset
"""


def test_inherited_functions_and_options_change_nothing(shell: list[str], spool: Spool) -> None:
    """Exported functions of bash, here with the name of each word in the hook, are not called."""
    code = re.sub(r"(?m)(^| )#.*", "", EMIT.read_text())
    words = set(re.findall(r"[a-z]+", code)) - set(NEVER.split())
    assert {"cat", "cd", "kill", "printf", "sleep", "umask"} <= words
    env = environment(spool.home) | {f"BASH_FUNC_{word}%%": "() { exit 3; }" for word in words}
    options = {"SHELLOPTS": "noglob", "BASHOPTS": "failglob", "GLOBIGNORE": "../hosts/*"}
    run(shell, "PreToolUse", "77", env=env | options)  # no host: kept in a slot
    assert [path.name for path in spool.slot.iterdir()] == ["77.PreToolUse"]
    spool.hosts.announce(os.getpid())
    run(shell, "PreToolUse", "77", env=env)
    run(shell, "PreToolUse", "77", env=env | options)
    made = [*spool.new.iterdir()]
    assert {path.stat().st_mode & 0o777 for path in made} == {0o600}
    assert {(item.payload, item.event) for item in events(spool)} == {(PAYLOAD, "PreToolUse")}
    assert len(made) == 2


#: What a shell reads as it starts for `-lc`; zsh as itself reads another file than the others.
PROFILES = (".profile", ".zprofile")
PROFILE = """
for word in cat mv printf; do eval "$word() { echo function; }"; done
[ "${BASH_VERSION-}" ] && shopt -s expand_aliases failglob
[ "${ZSH_VERSION-}" ] && setopt ksh_glob sh_word_split nomatch noclobber rc_quotes csh_null_glob
alias cat='cat -n' command='echo alias' mv='echo alias' printf='echo alias' umask='echo alias'
IFS=0123456789
"""


def test_what_a_login_shell_defines_changes_nothing(
    shell: list[str], spool: Spool, tmp_path: Path
) -> None:
    """Codex runs `-lc` in the user's own shell; a tool event without a host goes into a slot."""
    for name in PROFILES:
        (tmp_path / name).write_text(PROFILE)
    command = f'{{ set -- PreToolUse "$PPID" codex; . {EMIT}; }}; exit 0'
    done = subprocess.run(
        [*shell, "-lc", command],
        env=environment(spool.home, HOME=str(tmp_path)),
        input=PAYLOAD,
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    assert done.stdout + done.stderr == b""
    [file] = files(spool.home)
    assert file == spool.slot / f"{os.getpid()}.PreToolUse"
    assert file.read_bytes().endswith(b"\0\0" + PAYLOAD)


@pytest.mark.parametrize("args", [[], [""], ["../../x"], ["a b"], ["$(x)", "y", "z"], ["-n"]])
def test_odd_arguments_still_make_an_event(shell: list[str], spool: Spool, args: list[str]) -> None:
    """The payload still names the event."""
    run(shell, *args, env=environment(spool.home))
    assert [(item.payload, item.event) for item in events(spool)] == [(PAYLOAD, "unknown")]
    assert len(files(spool.home)) == 1


@pytest.mark.parametrize("size", [0, 1 << 20, 50 << 20])
def test_any_size_is_read_to_the_end(shell: list[str], spool: Spool, size: int) -> None:
    """Stopping early would break the CLI's pipe; this holds without a spool as well."""
    run(shell, "Stop", env=environment(spool.home), payload=PAYLOAD + b"x" * size)
    [item] = events(spool)
    assert item.payload.startswith(PAYLOAD)
    assert (size > 0) == item.truncated
    run(shell, "Stop", env=environment(spool.home / "not"), payload=PAYLOAD + b"x" * size)


@pytest.mark.parametrize("missing", ["home", "new", "tmp", "all"])
def test_without_a_spool_nothing_is_written(
    shell: list[str], spool: Spool, missing: str, tmp_path: Path
) -> None:
    """The hook may be installed without bellboard: then it only reads."""
    env = environment(spool.home)
    if missing == "home":
        env = environment(None)
        shutil.rmtree(spool.home)
    elif missing == "all":
        shutil.rmtree(spool.home / "spool")
    else:
        shutil.rmtree(spool.home / "spool" / missing)
    before = sorted(tmp_path.rglob("*"))
    for event in ("Stop", "PreToolUse"):
        run(shell, event, env=env, payload=PAYLOAD * 20_000)
    assert before == sorted(tmp_path.rglob("*"))


@pytest.mark.parametrize("home", ["", "."])
def test_without_a_home_nothing_is_written(
    shell: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """Not in the current folder either."""
    monkeypatch.chdir(tmp_path)
    Spool(tmp_path / ".local/state/bellboard").prepare()
    before = sorted(tmp_path.rglob("*"))
    for env in ({"HOME": home}, {"HOME": home, "BELLBOARD_HOME": "."}):
        run(shell, "Stop", env=environment(None, **env))
    assert before == sorted(tmp_path.rglob("*"))


def test_our_own_link_to_a_home_is_followed(shell: list[str], spool: Spool, tmp_path: Path) -> None:
    """To where the user wants it, perhaps on another disk."""
    home = tmp_path / "home"
    home.symlink_to(spool.home)
    run(shell, "Stop", env=environment(home))
    assert 1 == len(events(spool))


@pytest.mark.skipif(not ROOT, reason="only root can give a file away")
def test_a_script_that_is_not_ours_is_not_run(shell: list[str], tmp_path: Path) -> None:
    """The line in the settings names a path that another user could fill once it is free."""
    script, trace = tmp_path / "emit", tmp_path / "trace"
    line = hookline.hook_line(str(script), "Stop", "/nowhere")
    script.write_text(f"echo run >{trace}\n")
    subprocess.run([*shell, "-c", line], check=True, timeout=PATIENCE)
    assert trace.exists()
    trace.unlink()
    os.chown(script, 54_321, 54_321)
    subprocess.run([*shell, "-c", line], check=True, timeout=PATIENCE)
    assert not trace.exists()


def test_the_home_is_found_as_the_host_finds_it(
    shell: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BELLBOARD_HOME, XDG_STATE_HOME, HOME; never a relative path, which is the project's."""
    from bellboard.storage.spool import Refused, default_home

    for env in (
        {"HOME": str(tmp_path)},
        {"HOME": "/x", "XDG_STATE_HOME": str(tmp_path / "xdg")},
        {"HOME": "/x", "XDG_STATE_HOME": "", "BELLBOARD_HOME": str(tmp_path / "own")},
        {"HOME": str(tmp_path / "user"), "XDG_STATE_HOME": "relative"},
    ):
        spool = Spool(default_home(env))
        assert spool.home.is_relative_to(tmp_path)
        spool.prepare()
        run(shell, "Stop", env=environment(None, **env))
        assert len(events(spool)) == 1
    monkeypatch.chdir(tmp_path)
    run(shell, "Stop", env=environment(Path("own")))
    assert len(events(spool)) == 1
    with pytest.raises(Refused):
        default_home({"BELLBOARD_HOME": "own"})


@pytest.fixture
def tiny(spool: Spool) -> Iterator[Spool]:
    """Return a spool on a file system of 256 kB."""
    if not ROOT or sys.platform != "linux":
        pytest.skip("mounting needs root on Linux; RLIMIT_FSIZE stands in below")
    mount = Mounts()
    mount("-t", "tmpfs", "-o", "size=256k", "tmpfs", at=spool.home / "spool")
    try:
        spool.prepare()
        yield spool
    finally:
        mount.close()


def test_a_full_disk_costs_the_event_and_nothing_else(shell: list[str], tiny: Spool) -> None:
    """Silent, read to the end, no half event, no litter; it works again afterwards."""
    env = environment(tiny.home, written="1")  # also a variable of the hook
    run(shell, "Stop", env=env, payload=PAYLOAD * 20_000)
    run(shell, "Stop", env=env)
    assert [item.payload for item in events(tiny)] == [PAYLOAD]
    assert len(files(tiny.home)) == 1


@pytest.mark.parametrize("limit", [0, 65536])
def test_a_limit_on_files_costs_the_event_and_nothing_else(
    shell: list[str], spool: Spool, limit: int
) -> None:
    """Like a full disk, where nothing can be mounted."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [*shell, str(EMIT), "Stop"],
        stdin=theirs,
        env=environment(spool.home),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    theirs.close()
    with ours:
        ours.sendall(PAYLOAD * 20_000)
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(timeout=PATIENCE) == 0
    assert files(spool.home) == []


def test_a_read_only_spool_costs_the_event_and_nothing_else(shell: list[str], spool: Spool) -> None:
    """Root can write regardless of permissions, so root gets a read-only mount."""
    place, mount = spool.home / "spool", Mounts()
    if ROOT and sys.platform == "linux":
        mount("--bind", str(place), at=place)
        mount("-o", "remount,ro,bind", at=place, again=True)
    else:
        for name in ("tmp", "new", "slot"):
            (place / name).chmod(0o500)
    try:
        for event in ("Stop", "PreToolUse"):
            env = environment(spool.home, SHELLOPTS="errexit:nounset")
            run(shell, event, env=env, payload=PAYLOAD * 20_000)
    finally:
        mount.close()
        spool.prepare()
    assert files(spool.home) == []


@pytest.mark.parametrize("event", ["Stop", "PermissionRequest"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors_do_no_harm(
    shell: list[str], spool: Spool, closed: str, event: str
) -> None:
    """Without standard input there is no event, no litter and no complaint."""
    command = f"{' '.join(shell)} {EMIT} {event} {closed}"
    done = subprocess.run(
        ["sh", "-c", command],
        env=environment(spool.home),
        input=PAYLOAD,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (0 if "<&-" in closed else 1) == len(files(spool.home))


#: As with `bwrap --bind / /`: it cannot be opened. (Only root can make one.)
NODEV = "{ mknod -m 666 /dev/null c 1 3 || touch /dev/null; } && mount -o remount,nodev /dev"


@pytest.mark.parametrize("instead", ["true", "mkdir /dev/null", "touch /dev/null", NODEV])
def test_without_dev_null_it_still_exits_0(shell: list[str], spool: Spool, instead: str) -> None:
    """A failing redirection makes a POSIX shell exit 2, which would stop the agent's tool."""
    if sys.platform != "linux":
        pytest.skip("/dev/null is hidden by a mount namespace")
    inside = unshared("--mount")
    hide = f"mount -t tmpfs tmpfs /dev && {instead} && mount -o remount,nodev,ro /dev"
    if spool.home.is_relative_to("/dev/shm"):
        back = "mkdir /dev/shm && mount --move /tmp /dev/shm"
        hide = f"mount --bind /dev/shm /tmp && {hide.replace('&&', f'&& {back} &&', 1)}"
    command = f"{hide} && exec {' '.join(shell)} {EMIT} Stop"
    done = subprocess.run(
        [*inside, "sh", "-c", command],
        env=environment(spool.home),
        input=PAYLOAD,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"" or (instead == NODEV and done.stderr.count(b"\n") == 1)
    assert len(events(spool)) == 1


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_closed_terminal_does_not_lose_the_event(
    shell: list[str], spool: Spool, number: signal.Signals
) -> None:
    """Old CLIs share their process group with the hook, and SessionEnd is sent just then."""
    process = subprocess.Popen(
        [*shell, str(EMIT), "SessionEnd"],
        stdin=subprocess.PIPE,
        env=environment(spool.home),
        start_new_session=True,
    )
    eventually(lambda: files(spool.home), "the hook has begun")
    os.killpg(process.pid, number)
    process.communicate(PAYLOAD, timeout=PATIENCE)
    assert process.returncode == 0
    assert [item.payload for item in events(spool)] == [PAYLOAD]


def test_fifty_at_once_lose_nothing(shell: list[str], spool: Spool) -> None:
    """Events from 50 writers at a time: each arrives once, whole."""
    many = 200
    spool.hosts.announce(os.getpid())
    env = environment(spool.home)

    def emit(number: int) -> None:
        payload = json.dumps({"number": number, "x": "y" * 3000}).encode()
        kind = "PreToolUse" if number % 2 else "Stop"
        subprocess.run(
            [*shell, str(EMIT), kind, "77"], env=env, input=payload, check=True, timeout=PATIENCE
        )

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(emit, range(many)))
    assert list(range(many)) == sorted(json.loads(item.payload)["number"] for item in events(spool))
    assert len(files(spool.home)) - 1 == many  # without that of the host


def in_a_container(shell: list[str], *hidden: str) -> list[str]:
    """Return the command of a hook whose pid is always 1, and that reads nothing in those files."""
    if sys.platform != "linux":
        pytest.skip("pid namespaces are Linux's")
    hide = "".join(f"mount --bind /dev/null {path} && " for path in hidden)
    run = f"RANDOM=../../x exec unshare --pid --fork {' '.join(shell)} {EMIT} Stop 77"
    return [*unshared("--mount"), "sh", "-c", hide + run]


UUID = "/proc/sys/kernel/random/uuid"


@pytest.mark.parametrize(("many", "hidden"), [(40, ["/proc/uptime"]), (10, ["/proc/uptime", UUID])])
def test_a_name_is_never_taken_twice(
    shell: list[str], spool: Spool, many: int, hidden: list[str]
) -> None:
    """Containers that share the spool have the same pids in the same moment.

    None is done before the last has begun. What comes after them is not taken for what was folded,
    if it has a UUID.
    """
    tmp = spool.home / "spool" / "tmp"
    command, env = in_a_container(shell, *hidden), environment(spool.home)
    emitters = [subprocess.Popen(command, stdin=subprocess.PIPE, env=env) for _ in range(many)]
    try:
        eventually(lambda: len(list(tmp.iterdir())) == many, "each has a name of its own")
    finally:
        for number, emitter in enumerate(emitters):
            emitter.communicate(str(number).encode(), timeout=PATIENCE)
    assert list(range(many)) == sorted(int(item.payload) for item in events(spool))
    names = spool.scan()
    assert all(map(state_folder.is_event, names))
    spool.unlink(names)
    subprocess.run(command, env=env, input=PAYLOAD, check=True, timeout=PATIENCE)
    assert UUID in hidden or not {*names} & {*spool.scan()}


def test_an_event_that_waits_is_not_overwritten(shell: list[str], spool: Spool) -> None:
    """A process id is reused while its event waits: after days, or without a UUID and a clock."""
    command = in_a_container(shell, "/proc/uptime", UUID)
    for number in range(4):
        env = environment(spool.home)
        payload = str(number).encode()
        subprocess.run(command, env=env, input=payload, check=True, timeout=PATIENCE)
    assert sorted(int(item.payload) for item in events(spool)) == [0, 1, 2, 3]
    assert all(map(state_folder.is_event, spool.scan()))


def test_without_a_host_tool_events_overwrite_each_other(shell: list[str], spool: Spool) -> None:
    """The last of each kind and CLI is kept, and every other event."""
    env = environment(spool.home)
    (spool.home / "hosts" / "4194305").touch()  # above any pid, so dead
    for name in ("junk", "0", "-1", "12x"):
        (spool.home / "hosts" / name).touch()
    names = {"PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "tool_begin"}
    for number in range(5):
        for event in names:
            run(shell, event, "77", env=env, payload=b'{"n":%d}' % number)
        run(shell, "Stop", "77", env=env)
    run(shell, "PreToolUse", "78", env=env)
    assert spool.pending() == 5
    slots = {path.name: path for path in spool.slot.iterdir()}
    assert {f"77.{event}" for event in names} == {name for name in slots if name[1] == "7"}
    assert all(b'{"n":4}' in slots[name].read_bytes() for name in slots if name[1] == "7")
    assert "78.PreToolUse" in slots
    spool.hosts.announce(os.getpid())
    for _ in range(3):
        run(shell, "PreToolUse", "77", env=env)
    assert spool.pending() == 8


SECRETS = {
    "CLAUDE_CODE_MESSAGING_TOKEN": "secret-messaging",
    "CLAUDE_CODE_MESSAGING_SOCKET": "/secret/socket",
    "ANTHROPIC_API_KEY": "sk-ant-secret",
    "ANTHROPIC_AUTH_TOKEN": "secret-auth",
    "AWS_SECRET_ACCESS_KEY": "secret-aws",
    "GITHUB_TOKEN": "ghp_secret",
    "CLAUDE_CODE_SSE_PORT": "secret-port",
}


def test_no_secret_of_the_environment_is_written(shell: list[str], spool: Spool) -> None:
    """Only named variables are written: the CLI's environment holds tokens."""
    for event in ("Stop", "PreToolUse"):
        run(shell, event, env=environment(spool.home, **SECRETS))
    written = b"".join(path.read_bytes() + os.fsencode(path) for path in files(spool.home))
    assert PAYLOAD in written
    assert [value for value in SECRETS.values() if value.encode() in written] == []


EDIT = '{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"%s","tool_input":{%s}}'
ASK = (
    b'{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask",'
    b'"permissionDecisionReason":"you have unsaved changes of this file in Neovim"}}\n'
)
ODD = '/srv/[a] "b" $(c) \\ é.py'
#: The tool, what it gets, and whether the CLI is to ask while these files have unsaved changes.
GUARDED = {
    "a file": ("Edit", '"file_path":"/srv/a.py","old_string":"x"', True),
    "a notebook": ("NotebookEdit", '"new_source":"","notebook_path":"/srv/a.py"', True),
    "an odd name": ("Write", f'"file_path":{json.dumps(ODD, ensure_ascii=False)}', True),
    "another file": ("Edit", '"file_path":"/srv/a.pyc","old_string":"x"', False),
    "a text that names it": (
        "Write",
        '"file_path":"/srv/b","content":"{\\"file_path\\":\\"/srv/a.py\\"}"',
        False,
    ),
    "a file that is read": ("Read", '"file_path":"/srv/a.py"', False),
}


def guarded(shell: list[str], spool: Spool, tool: str, given: str, **env: str) -> bytes:
    """Run the hook before a tool; return what it prints, and check that the event is there."""
    payload = (EDIT % (tool, given)).encode()
    done = subprocess.run(
        [*shell, str(EMIT), "PreToolUse", str(os.getpid())],
        input=payload,
        env=environment(spool.home, **env),
        capture_output=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert events(spool)[-1].payload.strip() == payload
    return done.stdout


@pytest.mark.parametrize("case", GUARDED)
def test_it_has_the_cli_ask_before_unsaved_changes_are_written_over(
    shell: list[str], spool: Spool, case: str
) -> None:
    """If a running host lists the file, whatever its name."""
    tool, given, asks = GUARDED[case]
    spool.hosts.announce(os.getpid())
    spool.hosts.list_unsaved(os.getpid(), ["/srv/other", "/srv/a.py", ODD])
    assert guarded(shell, spool, tool, given) == (ASK if asks else b"")


def test_it_asks_nothing_where_nobody_could_answer_or_nothing_is_unsaved(
    shell: list[str], spool: Spool
) -> None:
    """After a host has died, headless, of another agent, or once the changes are saved."""
    edit, pid = ("Edit", '"file_path":"/srv/a.py"'), os.getpid()
    dead = subprocess.Popen(["true"])
    spool.hosts.announce(dead.pid)
    spool.hosts.list_unsaved(dead.pid, ["/srv/a.py"])
    dead.wait()
    spool.hosts.announce(pid)
    assert guarded(shell, spool, *edit) == b""
    spool.hosts.list_unsaved(pid, ["/srv/a.py"])
    assert guarded(shell, spool, *edit, CLAUDE_CODE_ENTRYPOINT="sdk-cli") == b""
    assert guarded(shell, spool, *edit, BELLBOARD_AGENT="qwen") == b""
    assert spool.hosts.alive() == [pid]  # which removes what the dead one has left
    spool.hosts.list_unsaved(pid, [])
    assert guarded(shell, spool, *edit) == b""
    assert [path.name for path in Path(spool.home, "hosts").iterdir()] == [str(pid)]
