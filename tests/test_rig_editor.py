"""The rig's editors: each Neovim of the matrix, clean and on its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import psutil
import pytest

from rig import neovim
from rig.cache import CHECKOUT
from rig.fixtures import Editors
from rig.home import Home
from rig.reaper import lives

pytestmark = pytest.mark.editor


def test_the_command_runs_the_requested_version(version: str, home: Home) -> None:
    """tests/rig/nvim VERSION --version prints that version."""
    neovim.executable(version)
    said = subprocess.run(
        [CHECKOUT / "tests/rig/nvim", version, "--version"],
        env={**os.environ, "HOME": str(home.root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith(f"NVIM v{version}." if version in neovim.LINES else "NVIM v")


def test_an_unknown_version_is_refused_in_one_line() -> None:
    """The program exits with an error and lists the known versions."""
    done = subprocess.run(
        [CHECKOUT / "tests/rig/nvim", "0.9"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "0.10, 0.12" in done.stderr


def test_an_index_without_a_signature_is_refused(home: Home) -> None:
    """No package comes from a mirror that Debian did not sign; nothing is left behind."""
    dist = home.root / "mirror/dists/sid"
    dist.mkdir(parents=True)
    (dist / "Release").write_text("Suite: sid\nCodename: sid\nComponents: main\n")
    env = {
        **home.env,
        "BELLBOARD_CACHE": str(home.root / "kept"),
        "BELLBOARD_MIRROR": f"file://{home.root}/mirror",
    }
    if shutil.which("apt-get", path=env["PATH"]) is None:
        return  # nothing is fetched on this machine
    done = subprocess.run(
        [CHECKOUT / "tests/rig/nvim", "0.12"], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not signed" in done.stderr
    assert list((home.root / "kept").glob("[!.]*")) == []


def test_an_editor_sees_nothing_of_the_user(
    nvim: Editors, version: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is the home's, and child processes inherit nothing of ours."""
    monkeypatch.setenv("BELLBOARD_CANARY", "of the test run")
    editor = nvim(version)
    environ = editor.lua("return vim.fn.environ()")
    ours = {"VIM", "VIMRUNTIME", "NVIM", "MYVIMRC", "NVIM_LOG_FILE"}
    assert set(environ) - ours == set(home.env)
    assert str(home.root) in editor.lua("return vim.fn.stdpath('state')")
    ran = editor.lua("return vim.fn.system({vim.v.progpath, '--version'})")
    assert ran.startswith("NVIM v")


def test_a_config_brings_the_plugin(nvim: Editors) -> None:
    """g:bellboard is set before plugins load, and the checkout is on the runtimepath.

    Only tests of it have the plugin's part of the statusline.
    """
    editor = nvim(config={"icons": "ascii"})
    expected = {"icons": "ascii", "statusline": {"auto": False}}
    assert expected == editor.lua("return vim.g.bellboard")
    assert str(CHECKOUT) in editor.lua("return vim.o.runtimepath").split(",")
    bare = nvim()
    assert str(CHECKOUT) not in bare.lua("return vim.o.runtimepath").split(",")


def test_closing_ends_the_editor_and_its_children(nvim: Editors, eventually: Any) -> None:
    """A job started in a terminal buffer is gone as well."""
    editor = nvim()
    pid = editor.lua("vim.cmd.terminal('sleep 600') return vim.fn.jobpid(vim.bo.channel)")
    job = psutil.Process(pid)
    editor.close()
    eventually(lambda: not lives(job), "the end of the job")


@pytest.mark.parametrize("peer", ["lualine", "telescope"])
def test_real_plugins_load(nvim: Editors, peer: str) -> None:
    """Debian's lualine and telescope work in the newest Neovim."""
    peers = ("plenary", peer) if peer == "telescope" else (peer,)
    editor = nvim("0.12", peers=peers)
    editor.lua(f"require('{peer}').setup({{}})")
    if peer == "lualine":
        editor.shows("NORMAL")
    else:
        editor.command("Telescope builtin")
        editor.shows("Results")
    assert editor.messages() == ""
