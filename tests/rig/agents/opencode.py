"""The real OpenCode with our plugin, in a home of its own, on a fake model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bellboard.agents.opencode.agent import OpenCode
from rig import ROOT
from rig.agents.model import Model
from rig.fetched import node, npm
from rig.fetched.cache import Missing
from rig.home import Home
from rig.tmux import Pane, Server
from rig.waiting import PATIENCE

NAME: Final = "opencode-ai"
VERSION: Final = "1.18.33"
OFF: Final = {
    f"OPENCODE_DISABLE_{name}": "1"
    for name in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
}


def executable() -> Path:
    """Return the program of this machine."""
    package = npm.package(NAME, VERSION)
    names = ("opencode-linux-x64", "opencode-linux-arm64", "opencode-darwin-arm64")
    found = [p for name in names if (p := package.parent / name / "bin/opencode").exists()]
    if not found:
        raise Missing(f"OpenCode {VERSION} has no program for this machine; remove {package}")
    node.node()
    return found[0]


@contextmanager
def running(home: Home, tmux: Server, args: Sequence[str] = ()) -> Iterator[tuple[Pane, Model]]:
    """A terminal of it, and its model, for the time of a test."""
    model = Model()
    folder = home.root / "config/opencode"
    (folder / "plugins").mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(config(model)))
    (folder / "plugins/bellboard.js").write_text(OpenCode().reporting(str))
    home.bellboard.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(ROOT / "hooks/emit", home.bellboard / "emit")
    try:
        env = {**OFF, "NO_PROXY": "127.0.0.1,localhost"}
        pane = tmux.open([executable(), *args], env=env, columns=120, lines=44)
        pane.shows("Ask anything", within=3 * PATIENCE)  # its first start installs packages
        yield pane, model
    finally:
        model.close()


def config(model: Model, may: str = "ask") -> dict[str, object]:
    """Return settings for a fake model; `may`: what it does before a command or an edit."""
    known = {"name": "Fake", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
    options = {"baseURL": model.url, "apiKey": "dummy"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options}
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "permission": {"bash": may, "edit": may},
        "provider": {"fake": {**provider, "models": {"fake-model": known}}},
    }
