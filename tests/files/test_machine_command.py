"""The `machine` command: what it stores, and what it reports as missing on another machine."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bellboard.storage import machines
from bellboard.system.remotely import command_of, sockets
from rig import warm
from rig.home import Home
from rig.host.far_feed import FarFeed
from rig.host.hosting import RecordedHost
from rig.machines.ssh import set_followed
from rig.waiting import eventually

pytestmark = pytest.mark.files
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


def run(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    return warm.run(["-m", "bellboard", "machine", *words], env=home.env, timeout=60)


def test_a_machine_is_added_listed_and_removed(home: Home) -> None:
    done = run(home, "add", "dev", "--", "ssh", "-p", "22", "dev")
    assert (done.returncode, "bellboard machine test dev" in done.stdout) == (0, True)
    assert machines.known(home.bellboard).all == {"dev": ["ssh", "-p", "22", "dev"]}
    told = json.loads(run(home, "list", "--json").stdout)
    assert told["v"] == 1
    (row,) = told["machines"]
    assert (row["name"], row["command"]) == ("dev", ["ssh", "-p", "22", "dev"])
    assert "ssh -p 22 dev: not connected" in (listed := run(home, "list").stdout)
    assert "start Neovim or `bellboard serve`" in listed
    assert run(home, "remove", "dev").returncode == 0
    assert machines.known(home.bellboard).all == {}
    assert "no machine is named dev" in run(home, "remove", "dev").stderr


@pytest.mark.parametrize(
    "words", [("a/b", "--", "ssh"), ("-x",), ("dev",), ("dev", "--", ""), ("dev", "--", "ssh")]
)
def test_what_cannot_be_followed_is_refused(home: Home, words: tuple[str, ...]) -> None:
    assert run(home, "add", *words).returncode != 0
    assert machines.known(home.bellboard).all == {}


def test_its_usage_demands_a_command_only_to_add_a_machine(home: Home) -> None:
    """A known machine is tested by its name."""
    assert "machine add [-h] NAME -- COMMAND ...\n" in run(home, "add", "--help").stdout
    assert "machine test [-h] NAME [-- COMMAND ...]\n" in run(home, "test", "--help").stdout


def test_machines_that_are_added_at_the_same_moment_are_all_kept(home: Home) -> None:
    home.bellboard.mkdir(mode=0o700)
    names = [f"dev{n}" for n in range(6)]
    with ThreadPoolExecutor(len(names)) as pool:
        done = [*pool.map(lambda name: run(home, "add", name, "--", "ssh", name), names)]
    assert [each.returncode for each in done] == [0] * len(names)
    assert sorted(machines.known(home.bellboard).all) == names


def test_a_list_that_cannot_be_read_is_not_overwritten(home: Home) -> None:
    """The user can correct an edited list; hosts say so, and follow the machines from before."""
    home.bellboard.mkdir(mode=0o700)
    set_followed(home.bellboard, {"dev": ["env"]})
    path = home.bellboard / "links/machines.json"
    host = RecordedHost(home)
    try:
        eventually(lambda: "machine dev" in host.notes or None, "the link")
        path.write_text('{"added": {"dev": ["ssh", "dev"],}}')
        for words in (["add", "x", "--", "ssh", "x"], ["remove", "dev"], ["list"], ["test", "x"]):
            done = run(home, *words)
            assert done.returncode == 1
            assert f"{path}: not a list of machines; fix or remove it" in done.stderr
        assert path.read_text().endswith(",}}")
        eventually(lambda: "not a list of machines" in host.notes.get("machines", ""), "a note")
        assert "machine dev" in host.notes
        path.write_text("{}")
        eventually(lambda: "machines" not in host.notes and "machine dev" not in host.notes)
    finally:
        host.kill()


def test_a_machine_of_neovim_is_removed_there(home: Home) -> None:
    home.bellboard.mkdir(mode=0o700)
    machines.edit(home.bellboard, lambda _: machines.Machines(nvim={"dev": ["ssh", "dev"]}))
    assert "vim.g.bellboard.machines" in run(home, "remove", "dev").stderr


def test_a_machine_that_answers_is_described(home: Home) -> None:
    feed = FarFeed(home.root / "dev")
    feed.moved("s1", "working")
    feed.say(b"Welcome to dev\n", feed.hello(version="9.9", agents=["claude"]), feed.state())
    done = run(home, "test", "dev", "--", *feed.command)
    assert done.returncode == 0, done.stderr
    assert "bellboard 9.9" in done.stdout
    assert "sessions: 1; agents: claude" in done.stdout
    assert "bellboard hooks install" in done.stdout
    assert feed.asked == []
    assert "standard input" not in done.stdout
    assert "not followed yet: start Neovim or `bellboard serve`" in done.stdout


def test_a_command_without_its_standard_input_is_noticed(home: Home) -> None:
    """`docker exec` without -i is such a command."""
    feed = FarFeed(home.root / "dev")
    feed.say(feed.hello(), feed.state())
    done = run(home, "test", "dev", "--", "sh", "-c", 'exec "$@" </dev/null', "sh", *feed.command)
    assert "it takes no requests" in done.stdout and "docker exec -i" in done.stdout


def test_on_a_terminal_it_says_at_once_what_it_waits_for(home: Home) -> None:
    ours, theirs = os.openpty()
    argv = [sys.executable, "-m", "bellboard", "machine", "test", "dev", "--", "echo", "hello"]
    subprocess.run(argv, env=home.env, stderr=theirs, timeout=60)
    os.close(theirs)
    said = os.read(ours, 4096).decode()
    os.close(ours)
    assert said.startswith("asking dev, up to 25 s …\r\n")


#: What the command to dev does, what is said of it, and what to do.
MISSING = r"""
env -i PATH=/usr/bin:/bin | not installed there | clone bellboard.nvim
no-such-program | dev: no-such-program: no such program here | install it
printf '{"feed":7,"type":"hello"}\n' | protocol 7 | update bellboard here
echo hello | ended before it sent | by hand
sh -c 'exec yes spam' | something other than a feed, such as: spam | a feed
sh -c 'exec yes spam >&2' | dev: spam | by hand
sh -c 'exec >&-; sleep 9' | ended before it sent | by hand
/dev/null | dev: /dev/null: no such program here | install it
/tmp | dev: /tmp: no such program here | install it
says 1 permission denied to reach the Docker daemon | permission denied | start docker
says 127 sh: 1: exec: bellboard: not found | not found | that it was installed with is gone
says 1 No module named 'msgspec' | msgspec | it is not completely installed there
says 255 IDENTIFICATION HAS CHANGED\nHost key bad | Host key bad | ssh-keygen -R
says 1 mount: permission denied | mount | by hand
ssh 255 me: Permission denied (publickey). | publickey | set up a key or an agent
"""


@pytest.mark.parametrize("row", MISSING.strip().splitlines())
def test_what_is_missing_there_is_reported_with_a_remedy(home: Home, row: str) -> None:
    """Refusals of other programs than ssh have nothing to do with its keys."""
    does, said, remedy = row.split(" | ")
    program, *more = does.split(" ", 2)
    command = shlex.split(does)
    if program in ("says", "ssh"):  # `says` is what another program would say
        code, text = more
        said_there = f"printf '%b\\n' {shlex.quote(text)} >&2"
        script = home.file(program, f"#!/bin/sh\n{said_there}; exit {code}\n")
        script.chmod(0o755)
        command = [str(script), "dev"]
    done = run(home, "test", "dev", "--", *command)
    assert done.returncode == 1
    assert said in done.stderr and remedy in done.stderr
    assert "Traceback" not in done.stderr


def test_a_test_logs_in_by_itself(home: Home) -> None:
    """A connection that is there already hides that a key has changed."""
    ssh = home.file(
        "ssh", '#!/bin/sh\necho "$*" | grep -o "Control[A-Za-z]*=[^ ]*" >&2; exit 255\n'
    )
    ssh.chmod(0o755)
    assert "ControlPath=none" in run(home, "test", "dev", "--", str(ssh), "dev").stderr


@pytest.mark.core
def test_ssh_gets_one_string_and_options_that_are_not_given() -> None:
    made = command_of(["/usr/bin/ssh", "-o", "ConnectTimeout=9", "dev"], ["feed"], "/run/u/links")
    assert made[:2] == ["/usr/bin/ssh", "-T"]
    assert "-oBatchMode=yes" in made and "-oControlPath=/run/u/links/%C" in made
    assert not any(x.startswith("-oConnectTimeout") for x in made)
    assert made[-2] == "dev" and made[-1].startswith("sh -c 'for d in")
    made = command_of(["ssh", "-o", "connecttimeout=60", "dev"], ["feed"], "/run/u/links")
    assert not any(x.startswith("-oConnectTimeout") for x in made)
    made = command_of(["ssh", "-o", "controlmaster=no", "dev"], ["feed"], "/run/u/links")
    assert not any(x.startswith("-oControl") for x in made)


@pytest.mark.skipif(not shutil.which("ssh"), reason="needs ssh")
@pytest.mark.parametrize(("word", "forwards"), [("-x", "no"), ("-X", "yes"), ("-Y", "yes")])
def test_a_link_forwards_no_display_unless_its_command_says_so(
    tmp_path: Path, word: str, forwards: str
) -> None:
    """Root on that machine could read the keyboard through it, as long as the link lasts."""
    config = tmp_path / "config"
    config.write_text("Host dev\n ForwardX11 yes\n ForwardX11Trusted yes\n ForwardAgent yes\n")

    def settings(*words: str) -> set[str]:
        made = command_of(["ssh", "-F", str(config), *words, "dev"], ["feed"], None)
        done = subprocess.run([*made[:1], "-G", *made[1:-1]], capture_output=True, text=True)
        return set(done.stdout.splitlines())

    assert {"forwardx11 no", "forwardagent no"} <= settings()
    assert f"forwardx11 {forwards}" in settings(word)


#: A command to another machine, and where its options and the remote command go.
SSHES = """
env A=b ssh -p 22 dev         | env A=b ssh OPTIONS -p 22 dev SCRIPT
sshpass -e /usr/bin/ssh dev   | sshpass -e /usr/bin/ssh OPTIONS dev SCRIPT
ssh dev docker exec -i box    | ssh OPTIONS dev docker exec -i box SCRIPT
tailscale ssh me@dev          | tailscale ssh me@dev OPTIONS SCRIPT
gcloud compute ssh dev        | gcloud compute ssh dev --quiet COMMAND -- OPTIONS
gcloud compute ssh a -- -p 22 | gcloud compute ssh a --quiet COMMAND -- OPTIONS -p 22
"""


def named(word: str) -> str:
    """Return the name of a part of such a command."""
    scripts = {"sh -c 'for d in": "SCRIPT", "--command=sh -c 'for d in": "COMMAND"}
    found = (name for start, name in scripts.items() if word.startswith(start))
    return "OPTIONS" if word in ("-t", "-T") else next(found, word)


@pytest.mark.core
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("row", SSHES.strip().splitlines())
def test_each_ssh_gets_its_options_where_it_takes_them(row: str, terminal: bool) -> None:
    """No ssh prompts, and the remote command is one string."""
    given, made = (words.split() for words in row.split("|"))
    words = command_of(given, ["feed"], None, terminal=terminal)
    assert [named(word) for word in words if not word.startswith("-o")] == made
    assert ("-oBatchMode=yes" in words) is not terminal


@pytest.mark.core
@pytest.mark.parametrize(
    ("command", "remedy"),
    [("mosh dev", "use ssh"), ("/usr/bin/et dev", "use ssh"), ("wsl.exe -d Debian", "-e as its")],
)
def test_what_carries_no_feed_is_refused_with_what_does(command: str, remedy: str) -> None:
    assert remedy in machines.wrong("dev", command.split())
    assert not machines.wrong("dev", [*command.split(), "-e"]) or "ssh" in remedy


#: A command, with which a feed is read and a terminal is opened.
CONTAINERS = """
docker exec -i box              | docker exec -i box         | docker exec -t -i box
docker exec box                 | docker exec -i box         | docker exec -t -i box
podman exec -it box             | podman exec -i box         | podman exec -t -i box
docker exec -u me -ti box       | docker exec -u me -i box   | docker exec -t -u me -i box
kubectl exec p -c main          | kubectl exec -i p -c main -- | kubectl exec -t -i p -c main --
kubectl -n a exec -i p --       | kubectl -n a exec -i p --  | kubectl -n a exec -t -i p --
sudo /bin/docker exec -i box    | sudo /bin/docker exec -i box | sudo /bin/docker exec -t -i box
nsenter -t 7 -p -- env exec     | nsenter -t 7 -p -- env exec  | nsenter -t 7 -p -- env exec
distrobox enter box --          | distrobox enter box --     | distrobox enter box --
"""


@pytest.mark.core
@pytest.mark.parametrize("row", CONTAINERS.strip().splitlines())
def test_a_container_gets_what_its_program_needs(row: str) -> None:
    """Each gets standard input, and drawing programs a terminal: a feed in one would fail."""
    given, feeds, opens = (words.split() for words in row.split("|"))
    assert command_of(given, ["feed"])[:-3] == feeds
    assert command_of(given, ["goto"], terminal=True)[:-3] == opens


def test_the_words_for_another_machine_pass_through_a_shell(home: Home, tmp_path: Path) -> None:
    program = home.root / ".local" / "bin" / "bellboard"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    program.chmod(0o755)
    words = ["goto", "it's a; $HOME `x`", "--attach"]
    env = {"HOME": str(home.root), "PATH": "/usr/bin:/bin"}
    for machine in (["env"], ["ssh", "dev"]):
        made = command_of(machine, words)
        argv = ["sh", "-c", made[-1]] if machine[0] == "ssh" else made
        shown = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
        assert shown.stdout == "<goto><it's a; $HOME `x`><--attach>"


@pytest.mark.parametrize(
    ("mode", "owner", "is_used"),
    [
        (0o700, os.geteuid(), True),
        (0o750, os.geteuid(), False),
        pytest.param(0o700, 54321, False, marks=only_root),
    ],
)
def test_ssh_gets_a_folder_for_its_sockets_only_if_it_is_private(
    home: Home, mode: int, owner: int, is_used: bool
) -> None:
    """Somebody may have made it in a folder that is shared; ours is too long for a socket."""
    folder = home.root / "bellboard"
    folder.mkdir()
    folder.chmod(mode)
    os.chown(folder, owner, -1)
    assert sockets(f"{home.root}/{'x' * 50}", str(home.root)) == (str(folder) if is_used else "")
