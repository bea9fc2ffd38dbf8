"""Installing the Python packages: `nvim -l build.lua`, and what tpm runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rig import neovim
from rig.cache import CHECKOUT
from rig.home import Home

pytestmark = pytest.mark.files

#: A Python that does what a build asks of it, unless something of the user's can get in its way.
STUB = """#!/bin/sh
echo "${{0##*/}} $*" >>"$HOME/python.log"
[ "$1" = -E ] || [ "$1" = -I ] || {{ echo "reads PYTHONPATH" >&2; exit 1; }}
case "$2 $3 $4" in
*version_info*) exit {old} ;;
"-m venv "*)
  sleep 0.2
  [ "$4" = --clear ] && rm -rf .venv/*
  mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
"-m pip install")
  [ "$5" = --no-user ] || {{ echo "ERROR: Can not perform a '--user' install." >&2; exit 1; }}
  case $* in
  *"--require-hashes --requirement requirements.txt") rm -f "$HOME/old-pip"; exit ;;
  *--no-deps*--no-index*--no-build-isolation*) ;;
  *" -qq "*) ;; # make, for whoever changes it
  *) echo "ERROR: it comes without a hash" >&2; exit 1 ;;
  esac
  [ ! -e "$HOME/old-pip" ] || {{ echo "ERROR: no editable mode" >&2; exit 1; }}
  [ -e "$HOME/target" ] || cp {true} .venv/bin/bellboard ;;
"-c import msgspec"*) [ -e .venv/bin/bellboard ] ;;
*ensurepip*)
  [ "$1" = -I ] || {{ echo "its child reads PYTHONPATH" >&2; exit 1; }} ;;
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
    (root / "lua/bellboard").mkdir(parents=True)
    for name in ("build.lua", "bellboard.tmux", "lua/bellboard/builder.lua"):
        shutil.copy(CHECKOUT / name, root / name)
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
    shutil.copy(CHECKOUT / "doc/bellboard.txt", plugin / "doc")
    tags = plugin / "doc/tags"
    for _ in range(2):
        assert nvim(home, plugin, version) == ""
        assert "\nbellboard-install\tbellboard.txt\t" in tags.read_text()
        tags.write_text("")


def test_a_help_that_cannot_be_written_to_stops_no_build(home: Home, plugin: Path) -> None:
    """What was asked for is there."""
    python(home.bin / "python3")
    (plugin / "doc/tags").mkdir(parents=True)
    shutil.copy(CHECKOUT / "doc/bellboard.txt", plugin / "doc")
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
    """Neither PYTHONPATH, which hides what is missing, nor `user = true` of pip."""
    python(home.bin / "python3")
    assert "installed" not in builds(home, plugin)
    assert FIRST in log(home) and PIP.search(log(home))


@BUILDERS
def test_an_environment_is_made_again_only_if_its_python_is_unfit(
    home: Home, plugin: Path, builds: Builder
) -> None:
    """Too old, it is replaced by the first that is not; else what is in there stays."""
    python(home.bin / "python3", old=True)
    python(home.bin / "python3.14")
    python(plugin / ".venv/bin/python", old=True)
    python(plugin / ".venv/bin/bellboard")
    added = plugin / ".venv/added"
    added.touch()
    builds(home, plugin)
    assert "python3.14 -E -m venv --clear .venv" in log(home) and PIP.search(log(home))
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
    shutil.copy(CHECKOUT / "Makefile", plugin / "Makefile")
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
    """tmux does not leave another file at each start."""
    for name in NAMES:
        python(home.bin / name, old=True)
    for _ in range(2):
        said = builds(home, plugin)
        if builds is tpm:
            said = (plugin / ".build.log").read_text()
        assert "Python 3.10 or newer is missing" in said
    assert not list(home.tmp.iterdir())
    if builds is tpm:
        assert "could not be installed" in tpm(home, plugin)
        python(home.bin / "python3.12")
        tpm(home, plugin)
        assert not (plugin / ".build.log").exists()


def test_tmux_builds_though_a_broken_program_is_on_path(home: Home, plugin: Path) -> None:
    """As `bellboard path` has put it there: it leads to what is to be built."""
    python(home.bin / "python3")
    broken = python(plugin / ".venv/bin/bellboard")
    broken.write_text(f"#!{plugin}/.venv/bin/python\n")  # which is gone
    (home.bin / "bellboard").symlink_to(broken)
    assert "installing" in tpm(home, plugin)
    assert PIP.search(log(home)) and "could not" not in tpm(home, plugin)


def test_tmux_does_not_name_a_log_that_it_cannot_write(home: Home, plugin: Path) -> None:
    """As where root has installed the plugin for all users."""
    python(home.bin / "python3")
    plugin.chmod(0o500)
    said = tpm(home, plugin, *UNPRIVILEGED)
    plugin.chmod(0o700)  # to be removed
    assert f"cannot write to {plugin}; put a working `bellboard` on your PATH" in said
    assert ".build.log" not in said


@BUILDERS
def test_pip_may_be_told_to_install_elsewhere(home: Home, plugin: Path, builds: Builder) -> None:
    """By `target` or `prefix` in its configuration, which may also name the mirror to use."""
    python(home.bin / "python3")
    (home.root / "target").touch()  # as the stub reads it
    said = builds(home, plugin)
    if builds is tpm:
        assert "could not be installed: see" in said
        said = (plugin / ".build.log").read_text()
    assert f'is not in .venv: see "{plugin}/.venv/bin/python -m pip config list"' in said


@BUILDERS
def test_a_pip_that_is_too_old_is_updated_first(home: Home, plugin: Path, builds: Builder) -> None:
    """As that of Python 3.10.2."""
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
    python(home.bin / "dnf")
    home.env["PATH"] = str(home.bin)
    assert "missing; dnf install python3.12, or install uv\n" in nvim(home, plugin)
    (home.bin / "dnf").unlink()
    assert "missing; install uv\n" in nvim(home, plugin)


@pytest.mark.house
def test_whatever_builds_tries_the_same_pythons() -> None:
    """Neovim, make and tpm."""
    for name in ("Makefile", "bellboard.tmux"):
        assert f"for p in {' '.join(NAMES)};" in (CHECKOUT / name).read_text(), name
    builder = (CHECKOUT / "lua/bellboard/builder.lua").read_text()
    assert "{ 'python3' }" in builder and "for minor = 14, 10, -1 do" in builder


@pytest.mark.house
def test_pip_installs_what_uv_does_by_the_same_hashes() -> None:
    """Also what builds the package; nothing else, and nothing without a hash."""
    toml = pytest.importorskip("tomllib")  # of Python 3.11
    locked = toml.loads((CHECKOUT / "uv.lock").read_text())["package"]
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
    head, text = (CHECKOUT / "requirements.txt").read_text().split("\n\n", 1)
    found = {
        rows.split()[0]: {*re.findall(r"--hash=(\S+)", rows)}
        for rows in re.split(r"\n(?=\w)", text)
    }
    assert found == expected, f"write it again:\n{head}"
