"""`build.sh` installs the Python packages; `nvim -l build.lua`, tpm and make run it."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rig import ROOT
from rig.fetched import neovim
from rig.home import Home

#: A Python that does what a build asks of it, unless something of the user's can get in its way.
STUB = """#!/bin/sh
echo "${{0##*/}} $*" >>"$HOME/python.log"
[ "$1" = -E ] || [ "$1" = -I ] || {{ echo "reads PYTHONPATH" >&2; exit 1; }}
case "$2 $3 $4" in
*version_info*) exit {old} ;;
"-m venv "*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
"-m pip install")
  [ ! -e "$HOME/killed" ] || {{ rm "$HOME/killed"; kill -9 $PPID; exit 1; }}
  [ ! -e "$HOME/offline" ] || {{ echo "ERROR: No matching distribution found for pynvim"; exit 1; }}
  [ "$5" = --no-user ] || {{ echo "ERROR: Can not perform a '--user' install." >&2; exit 1; }}
  case $* in
  *"--require-hashes --requirement requirements.txt") rm -f "$HOME/old-pip"; exit ;;
  *--no-deps*--no-index*--no-build-isolation*) ;;
  *" --upgrade "* | *" --group dev "*) ;; # make, for whoever changes it
  *) echo "ERROR: it comes without a hash" >&2; exit 1 ;;
  esac
  [ ! -e "$HOME/old-pip" ] || {{ echo "ERROR: no editable mode" >&2; exit 1; }}
  [ -e "$HOME/target" ] || cp {true} .venv/bin/bellboard ;;
"-c import msgspec"*) [ -e .venv/bin/bellboard ] ;;
*ensurepip* | *"import pip"*)
  [ "$1" = -I ] || {{ echo "its child reads PYTHONPATH" >&2; exit 1; }} ;;
esac
"""
#: A uv that does the same; what it makes is not from the stub of Python on PATH.
UV = """#!/bin/sh
echo "uv $*" >>"$HOME/python.log"
[ ! -e "$HOME/offline" ] || {{ echo "error: Failed to fetch: dns error" >&2; exit 2; }}
case $1 in
venv) exec python3 -E -m venv .venv ;;
pip) shift 4; exec .venv/bin/python -E -m pip install --no-user "$@" ;;
esac
"""
FIRST = "python3 -E -m venv .venv"
PIP = re.compile(r"^python -E -m pip install --no-user .*--editable \.$", re.MULTILINE)
#: Modes do not stop root; only its capabilities let it pass.
UNPRIVILEGED = ("setpriv", "--bounding-set=-all") if os.geteuid() == 0 else ()
NAMES = ("python3", *(f"python3.{minor}" for minor in range(14, 9, -1)))


def python(place: Path, old: bool = False) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(STUB.format(old=int(old), true=shutil.which("true")))
    place.chmod(0o755)
    return place


@pytest.fixture
def plugin(home: Home) -> Path:
    """Return the plugin as just downloaded, on a machine without uv."""
    root = home.root / "bellboard.nvim"
    root.mkdir()
    for name in ("build.sh", "build.lua", "bellboard.tmux"):
        shutil.copy(ROOT / name, root / name)
    (home.bin / "tmux").unlink(missing_ok=True)
    python(home.bin / "tmux").write_text('#!/bin/sh\necho "$*" >>"$HOME/tmux.log"\n')
    return root


def nvim(home: Home, plugin: Path, version: str = neovim.NEWEST) -> str:
    """Build as the README says; return the errors."""
    argv = [str(neovim.executable(version)), "--clean", "-l", str(plugin / "build.lua")]
    return subprocess.run(argv, env=home.env, capture_output=True, text=True).stderr


def tpm(home: Home, plugin: Path, *under: str) -> str:
    """Start tmux, under another program if given; return what it shows."""
    # It goes on in the background, until it closes these streams.
    argv = [*under, str(plugin / "bellboard.tmux")]
    subprocess.run(argv, env=home.env, capture_output=True, check=True)
    shown = home.root / "tmux.log"
    return shown.read_text() if shown.exists() else ""


Builder = Callable[[Home, Path], str]
BUILDERS = pytest.mark.parametrize("builds", [nvim, tpm])


def log(home: Home) -> str:
    return (home.root / "python.log").read_text()


def test_a_build_by_hand_needs_no_loaded_plugin(home: Home, plugin: Path, version: str) -> None:
    """In its main chunk, nothing takes the steps that lazy.nvim shows."""
    python(home.bin / "python3")
    assert nvim(home, plugin, version) == ""
    assert (plugin / ".venv/bin/bellboard").exists()


def test_a_build_makes_the_tags_of_the_help(home: Home, plugin: Path, version: str) -> None:
    """A clone in a folder of `:help packages` has none; a manager may have written them before."""
    python(home.bin / "python3")
    (plugin / "doc").mkdir()
    shutil.copy(ROOT / "doc/bellboard.txt", plugin / "doc")
    tags = plugin / "doc/tags"
    for _ in range(2):
        assert nvim(home, plugin, version) == ""
        assert "\nbellboard-install\tbellboard.txt\t" in tags.read_text()
        tags.write_text("")


def test_a_help_that_cannot_be_written_to_stops_no_build(home: Home, plugin: Path) -> None:
    """The packages are installed all the same."""
    python(home.bin / "python3")
    (plugin / "doc/tags").mkdir(parents=True)
    shutil.copy(ROOT / "doc/bellboard.txt", plugin / "doc")
    assert nvim(home, plugin) == ""
    assert (plugin / ".venv/bin/bellboard").exists()


def test_an_older_neovim_is_refused_in_one_line(home: Home, plugin: Path) -> None:
    """lazy.nvim builds in 0.9 as well, which has no `vim.uv`."""
    old = "lua vim.uv = nil; vim.fn.has = function() return 0 end"
    argv = [
        str(neovim.executable(neovim.NEWEST)),
        "--clean",
        "--cmd",
        old,
        "-l",
        str(plugin / "build.lua"),
    ]
    said = subprocess.run(argv, env=home.env, capture_output=True, text=True).stderr
    # `nvim -l` adds a traceback, lazy.nvim does not.
    assert said.splitlines()[0].endswith(" bellboard.nvim needs Neovim 0.10 or newer")


@BUILDERS
def test_a_build_reads_nothing_of_the_users_own_python(
    home: Home, plugin: Path, builds: Builder
) -> None:
    """PYTHONPATH would hide missing packages; pip may be set to `user = true`."""
    python(home.bin / "python3")
    assert "installed" not in builds(home, plugin)
    assert FIRST in log(home) and PIP.search(log(home))


@BUILDERS
def test_an_environment_is_made_again_only_if_its_python_is_unfit(
    home: Home, plugin: Path, builds: Builder
) -> None:
    """One too old is replaced by the first that is not; otherwise its content stays."""
    python(home.bin / "python3", old=True)
    python(home.bin / "python3.14")
    python(plugin / ".venv/bin/python", old=True)
    python(plugin / ".venv/bin/bellboard")
    added = plugin / ".venv/added"
    added.touch()
    builds(home, plugin)
    assert "python3.14 -E -m venv .venv" in log(home) and PIP.search(log(home))
    assert not added.exists()
    added.touch()
    (plugin / ".venv/bin/bellboard").unlink()
    builds(home, plugin)
    assert added.exists() and (plugin / ".venv/bin/bellboard").exists()
    assert log(home).count("-m venv") == 1


@BUILDERS
def test_an_unfit_environment_elsewhere_is_not_emptied(
    home: Home, plugin: Path, builds: Builder
) -> None:
    """A link may lead to the environment of something else."""
    python(home.bin / "python3")
    mine = python(home.root / "theirs/bin/python", old=True).with_name("mine")
    mine.touch()
    (plugin / ".venv").symlink_to(mine.parents[1])
    builds(home, plugin)
    assert mine.exists() and not mine.with_name("bellboard").exists()
    assert (plugin / ".venv/bin/bellboard").exists()


def test_make_does_not_empty_an_environment_elsewhere(home: Home, plugin: Path) -> None:
    """Nor does it make a fit one again."""
    shutil.copy(ROOT / "Makefile", plugin)
    (plugin / "pyproject.toml").touch()
    python(home.bin / "python3")
    mine = python(home.root / "theirs/bin/python", old=True).with_name("mine")
    mine.touch()
    (plugin / ".venv").symlink_to(mine.parents[1])
    for _ in range(2):
        argv = ["make", "--what-if=pyproject.toml", ".venv/.ready"]
        subprocess.run(argv, cwd=plugin, env=home.env, check=True)
    assert mine.exists() and (plugin / ".venv/.ready").exists()
    assert log(home).count("-m venv") == 1


@BUILDERS
def test_a_machine_without_a_fit_python_is_told_so(
    home: Home, plugin: Path, builds: Builder
) -> None:
    """With the file that has the rest; it goes once all is well."""
    for name in NAMES:
        python(home.bin / name, old=True)
    said = builds(home, plugin)
    assert "Python 3.10 or newer is missing" in said and "/.build.log" in said
    assert not list(home.tmp.iterdir())
    python(home.bin / "python3.12")
    builds(home, plugin)
    assert not (plugin / ".build.log").exists()


def test_tmux_builds_though_a_broken_program_is_on_path(home: Home, plugin: Path) -> None:
    """`bellboard path` has linked a program that is not built yet."""
    python(home.bin / "python3")
    broken = python(plugin / ".venv/bin/bellboard")
    broken.write_text(f"#!{plugin}/.venv/bin/python\n")  # which is gone
    (home.bin / "bellboard").symlink_to(broken)
    assert "installing" in tpm(home, plugin)
    assert PIP.search(log(home)) and "could not" not in tpm(home, plugin)


def test_tmux_does_not_name_a_log_that_it_cannot_write(home: Home, plugin: Path) -> None:
    """For example, root has installed the plugin for all users."""
    python(home.bin / "python3")
    plugin.chmod(0o500)
    said = tpm(home, plugin, *UNPRIVILEGED)
    plugin.chmod(0o700)  # to be removed
    assert f"cannot write to {plugin}; use a Python of your own: :help" in said
    assert ".build.log" not in said


@BUILDERS
def test_pip_may_be_told_to_install_elsewhere(home: Home, plugin: Path, builds: Builder) -> None:
    """By `target` or `prefix` in its configuration, which may also name the mirror to use."""
    python(home.bin / "python3")
    (home.root / "target").touch()  # as the stub reads it
    said = builds(home, plugin)
    assert f'is not in .venv: see "{plugin}/.venv/bin/python -m pip config list"' in said
    assert not (plugin / ".venv/.ready").exists()


@BUILDERS
def test_a_pip_that_is_too_old_is_updated_first(home: Home, plugin: Path, builds: Builder) -> None:
    """The pip of Python 3.10.2 is."""
    python(home.bin / "python3")
    (home.root / "old-pip").touch()
    builds(home, plugin)
    assert (plugin / ".venv/bin/bellboard").exists()


def test_a_python_that_dies_is_not_fit(home: Home, plugin: Path, version: str) -> None:
    """Neovim reports code 0 of a program that a signal has ended."""
    python(home.bin / "python3").write_text("#!/bin/sh\nkill -KILL $$\n")
    python(home.bin / "python3.14")
    assert nvim(home, plugin, version) == ""
    assert "python3.14 -E -m venv" in log(home)


def test_it_says_which_python_to_install(home: Home, plugin: Path) -> None:
    """The python3 of dnf may be the very one that is too old."""
    for name in NAMES:
        python(home.bin / name, old=True)
    (home.bin / "dirname").symlink_to(shutil.which("dirname") or "")
    for tool in ("sh", "awk", "sed", "ls", "rm", "grep"):
        (home.bin / tool).symlink_to(shutil.which(tool) or "")
    python(home.bin / "dnf")
    home.env["PATH"] = str(home.bin)
    assert "missing; dnf install python3.12, or install uv" in shell(home, plugin)
    (home.bin / "dnf").unlink()
    assert "missing; install uv" in shell(home, plugin)


def shell(home: Home, plugin: Path, *under: str) -> str:
    """Run it by hand; return its last line."""
    argv = [*under, str(plugin / "build.sh")]
    return subprocess.run(argv, env=home.env, capture_output=True, text=True).stdout


def test_a_build_that_was_killed_is_not_taken_for_a_whole_one(home: Home, plugin: Path) -> None:
    """Nor is one that failed; one that was whole before, and still works, is."""
    python(home.bin / "python3")
    ready = plugin / ".venv/.ready"
    (home.root / "killed").touch()
    shell(home, plugin)
    assert not ready.exists() and (plugin / ".venv/bin/python").exists()
    (home.root / "offline").touch()
    shell(home, plugin)
    assert not ready.exists()
    (home.root / "offline").unlink()
    assert "Python packages installed with pip\n" in shell(home, plugin) and ready.exists()
    (home.root / "offline").touch()
    assert "pip failed" in shell(home, plugin) and ready.exists()


def test_without_a_network_it_says_so_and_how_to_name_a_mirror(home: Home, plugin: Path) -> None:
    """The message has the errors of both uv and pip."""
    python(home.bin / "python3")
    python(home.bin / "uv").write_text(UV.format())
    (home.root / "offline").touch()
    said = shell(home, plugin).splitlines()[-1]
    assert "uv failed: Failed to fetch: dns error; pip failed: No matching dist" in said
    assert "Is there a network? UV_INDEX_URL and PIP_INDEX_URL name a mirror" in said
    assert said.endswith(f"All of it is in {plugin}/.build.log")


def test_uv_installs_by_the_same_hashes(home: Home, plugin: Path) -> None:
    """From the mirror that its configuration names: uv.lock names one of its own."""
    python(home.bin / "python3")
    python(home.bin / "uv").write_text(UV.format())
    assert shell(home, plugin).endswith("Python packages installed with uv\n")
    lines = [line for line in log(home).splitlines() if line.startswith("uv ")]
    pip = "uv pip install --python .venv/bin/python"
    assert lines == [
        "uv venv .venv",
        f"{pip} --require-hashes --requirement requirements.txt",
        f"{pip} --no-deps --no-index --no-build-isolation --editable .",
    ]


@pytest.mark.parametrize("tool", ["flock", "perl"])
def test_two_builds_wait_for_each_other(home: Home, plugin: Path, tool: str) -> None:
    """macOS has no flock; the second one finds all done."""
    python(home.bin / "python3")
    for name in ("sh", "dirname", "awk", "sed", "ls", "rm", "grep", "mkdir", "cp", tool):
        (home.bin / name).symlink_to(shutil.which(name) or "")
    home.env["PATH"] = str(home.bin)
    lock = os.open(plugin, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    argv = [str(plugin / "build.sh")]
    waits = subprocess.Popen(argv, env=home.env, stdout=subprocess.PIPE, text=True)
    assert waits.stdout
    assert waits.stdout.readline() == "another one is installing the Python packages …\n"
    (plugin / ".venv").mkdir()
    (plugin / ".venv/.ready").touch()
    os.close(lock)
    assert waits.communicate()[0] == "Python packages installed\n"
    assert waits.returncode == 0 and not (home.root / "python.log").exists()


@pytest.mark.house
def test_pip_installs_what_uv_does_by_the_same_hashes() -> None:
    """Build packages have hashes as well; nothing without a hash is installed."""
    toml = pytest.importorskip("tomllib")  # of Python 3.11
    locked = toml.loads((ROOT / "uv.lock").read_text())["package"]
    packages = {package["name"]: package for package in locked}
    own = packages["bellboard"]
    needed = [each["name"] for each in (*own["dependencies"], *own["dev-dependencies"]["build"])]
    for name in needed:
        needed += {each["name"] for each in packages[name].get("dependencies", ())} - {*needed}
    files = {name: (packages[name]["sdist"], *packages[name]["wheels"]) for name in needed}
    expected = {
        f"{name}=={packages[name]['version']}": {file["hash"] for file in files[name]}
        for name in needed
    }
    head, text = (ROOT / "requirements.txt").read_text().split("\n\n", 1)
    found = {
        rows.split()[0]: {*re.findall(r"--hash=(\S+)", rows)}
        for rows in re.split(r"\n(?=\w)", text)
    }
    assert found == expected, f"write it again:\n{head}"
