"""Completion, made from the argument parser, in real shells, and the link on PATH."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bellboard.storage.spool import Spool
from rig import ROOT
from rig.fetched.cache import Missing
from rig.fetched.tools import executable
from rig.home import Home
from rig.host.hosting import put

HOSTILE = "$(touch hacked)"
#: What is typed, and some of what is offered for the last word.
TYPED = {
    ("",): {"list", "hooks", "tmux", "completion"},
    ("hooks", "in"): {"install"},
    ("hooks", "install", "--"): {"--project", "--dry-run"},
    ("completion", ""): {"bash", "zsh", "fish"},
    ("goto", "session-"): {"session-1", "session-2"},
    ("tmux", "--ap"): {"--apply"},
}
RUN = {
    "bash": 'COMP_WORDS=(bellboard "$@"); COMP_CWORD=$#; _shtab_bellboard\n'
    'printf "%s\\n" "${COMPREPLY[@]}"',
    "zsh": """\
at=_shtab_bellboard
for word in ${@[1,-2]}; do at+=_$word; done
(( $+functions[${at}_commands] )) && ${at}_commands
for spec in ${(P)${:-${at}_options}}; do
  case $spec in
  (*_bellboard_sessions) _bellboard_sessions ;;
  (-*) print -r -- ${spec%%\\[*} ;;
  (*\\)) print -rl -- ${=${${spec##*\\(}%\\)}} ;;
  esac
done""",
    "fish": "complete -C (string join ' ' -- bellboard $argv)",
}
#: zsh's own completion system is in no static build: what the script would tell it is printed.
DESCRIBED = "compdef() :; _describe() print -rl -- ${${(P)@[-1]}%%:*}\n"


@pytest.fixture
def bellboard(home: Home) -> list[str]:
    """The program on PATH, with sessions that a shell may be offered."""
    program = home.bin / "bellboard"
    code = f'PYTHONPATH={ROOT / "rplugin/python3"} exec {sys.executable} -m bellboard "$@"'
    program.write_text(f"#!/bin/sh\n{code}\n")
    program.chmod(0o755)
    spool = Spool(home.bellboard)
    spool.prepare()
    for session in ("session-1", "session-2", HOSTILE):
        put(spool, "UserPromptSubmit", session)
    return [str(program)]


def output(home: Home, argv: list[str], code: int = 0) -> str:
    done = subprocess.run(argv, env=home.env, cwd=home.project, capture_output=True, text=True)
    assert (done.returncode, done.stderr if code == 0 else "") == (code, "")
    return done.stdout + done.stderr


@pytest.mark.parametrize("shell", RUN)
def test_completion_offers_what_the_parser_takes(
    home: Home, bellboard: list[str], shell: str
) -> None:
    """Commands, verbs, options, values and sessions; what an agent calls itself never runs."""
    if shell == "fish" and shutil.which("fish") is None:
        raise Missing("no fish on PATH")
    program = str(shutil.which("fish")) if shell == "fish" else str(executable(shell))
    script = home.root / f"completion.{shell}"
    script.write_text(output(home, [*bellboard, "completion", shell]))
    run = home.root / f"run.{shell}"
    read = f'{DESCRIBED}eval "$(<{script})"' if shell == "zsh" else f"source {script}"
    run.write_text(f"{read}\n{RUN[shell]}\n")
    for words, expected in TYPED.items():
        offered = {
            row.split("\t")[0] for row in output(home, [program, str(run), *words]).split("\n")
        }
        assert expected <= offered, words
        assert HOSTILE not in offered
    assert not (home.project / "hacked").exists()


def test_another_shell_is_refused_with_those_that_are_known(
    home: Home, bellboard: list[str]
) -> None:
    """And with nothing that only the scripts ask for."""
    said = output(home, [*bellboard, "completion", "ksh"], code=2)
    assert "invalid choice: 'ksh'; choose from bash, zsh, fish\n" in said
    assert "sessions" not in output(home, [*bellboard, "completion", "--help"])
    said = output(home, [*bellboard, "completion"], code=2)
    assert "completion [-h] SHELL" in said and "give a shell: bash, zsh or fish" in said


def test_the_completion_that_is_shipped_is_that_of_the_parser() -> None:
    """`python doc/completion.py` writes it."""
    pytest.importorskip("shtab")
    done = subprocess.run([sys.executable, "doc/completion.py", "--check"], cwd=ROOT)
    assert done.returncode == 0


def test_path_links_the_program_and_nothing_else(home: Home, tmp_path: Path) -> None:
    """The command reports a folder missing on PATH, and leaves files that are not ours."""
    program = Path(sys.executable).with_name("bellboard")
    argv = [sys.executable, "-m", "bellboard", "path"]
    if not program.is_file():
        raise Missing("no bellboard program in this environment; pip install --editable .")
    link = home.root / ".local/bin/bellboard"
    said = output(home, argv)
    assert f"linked: {link}" in said
    assert f"{link.parent} is not on your PATH; add to ~/.profile: export PATH=" in said
    assert link.readlink() == program
    output(home, argv)
    output(home, [*argv, "--remove"])
    assert not link.is_symlink()
    link.write_text("mine")
    assert f"{link} exists and is not a link" in output(home, argv, code=1)
    assert link.read_text() == "mine"


def test_path_links_what_a_build_has_made_if_the_chosen_python_has_no_program(home: Home) -> None:
    """So the advice helps where the option python names another Python."""
    plugin, chosen = home.root / "plugin", home.root / "chosen/python3"
    for name in ("rplugin/python3/bellboard", "hooks"):
        shutil.copytree(ROOT / name, plugin / name)
    chosen.parent.mkdir()
    chosen.symlink_to(Path(sys.executable).resolve())
    home.env["PYTHONPATH"] = sysconfig.get_path("purelib")
    main = str(plugin / "rplugin/python3/bellboard/__main__.py")
    argv = [str(chosen), main, "path"]
    advice = f"run `{chosen} -E {main}` instead, or unset the option python"
    assert advice in output(home, argv, code=1)
    built = plugin / ".venv/bin/bellboard"
    built.parent.mkdir(parents=True)
    built.touch()
    assert advice in output(home, argv, code=1)  # its Python is gone
    built.with_name("python").symlink_to(sys.executable)
    output(home, argv)
    assert (home.root / ".local/bin/bellboard").readlink() == built
