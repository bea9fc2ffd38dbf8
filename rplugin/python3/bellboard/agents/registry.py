"""The CLIs that bellboard knows; each is loaded when it is first needed."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Final

from ..core.program_status import Report
from .agent import Agent

#: Names in evidence of plugins with chats inside Neovim, which have one folder.
CHATS: Final = ("codecompanion", "avante", "agentic")
#: Names of CLIs in evidence.
KEYS: Final = (
    *("claude", "codex", "opencode", "copilot", "qwen", "gemini", "pi", "cursor", "droid"),
    *("goose", "kimi", "amp", "crush", *CHATS),
)
#: Name of a CLI → its package, relative to this one.
_FOLDERS: Final = {
    **{key: f".{key}" for key in KEYS},
    **dict.fromkeys(CHATS, ".chats"),
    KEYS[0]: ".claude",
}
#: The environment variables to read → their neutral names.
VARIABLES: Final = {
    "CLAUDE_CODE_ENTRYPOINT": "entrypoint",
    "CLAUDE_CODE_PARENT_SESSION_ID": "parent",
    "CLAUDE_CODE_SESSION_ATTENDED": "attended",
    "CLAUDE_CONFIG_DIR": "config_dir",
    "CLAUDE_JOB_DIR": "job",
    "CLAUDE_PROJECT_DIR": "project_dir",
    "SSH_CONNECTION": "ssh",
    "TERM_PROGRAM": "terminal",
}

#: Environment variable with the process that runs the hooks → its CLI.
RUNNERS: Final = {"COPILOT_LOADER_PID": "copilot"}
#: What a CLI calls itself in its own report → its name in evidence, if that differs.
APPS: Final = {"claude-code": KEYS[0]}
_APP: Final = re.compile(r"[A-Za-z0-9_.+-]{1,32}", re.ASCII)
#: Agent whose dialect could not be loaded → why: thousands of events may need it.
_failed: Final[dict[str, str]] = {}


def is_known_agent(agent: str) -> bool:
    """Return whether bellboard knows the agent's own words."""
    return agent in _FOLDERS


def known_agent(agent: str) -> str:
    """Return the agent; an unknown one is taken for the first."""
    return agent if is_known_agent(agent) else KEYS[0]


def agent_of_program(app: str, command: str) -> str:
    """Return the agent of a program: as its own report calls it, or its command."""
    named = next((name for name in (app, command) if _APP.fullmatch(name)), "program")
    return APPS.get(named, named)


def status_reported(agent: str, report: Report) -> str:
    """Return what a program says of itself, in the words of the protocol or as `background`."""
    return agent_of(agent).reported(report) if is_known_agent(agent) else report.state


def module_of(agent: str, name: str) -> ModuleType:
    """Load a module of an agent's package."""
    name = "agent" if agent in ("claude", "codex", "opencode") else name
    return import_module(f"{_FOLDERS[agent]}.{name}", __package__)


def agent_of(agent: str) -> Agent:
    """Return the dialect of an agent."""
    return _loaded(known_agent(agent))


def all_agents() -> tuple[Agent, ...]:
    """Return all of them, the first one first."""
    return tuple(map(agent_of, KEYS))


def try_again() -> None:
    """Let what could not be loaded be tried again."""
    _failed.clear()


@cache
def _loaded(agent: str) -> Agent:
    """Load a dialect, and no other: together they take longer than most commands.

    Raise ImportError if its file is that of another version, or half written, and not if the system
    lacks something; then without another try until `try_again`.
    """
    if agent in _failed:
        raise ImportError(_failed[agent])
    try:
        spoken = module_of(agent, "dialect.spoken")
        found: Agent = spoken.DIALECTS[agent] if agent in CHATS else spoken.DIALECT
    except (MemoryError, OSError):
        raise
    except Exception as e:
        _failed[agent] = f"{_FOLDERS[agent][1:]}: {e}"
        raise ImportError(_failed[agent]) from e
    return found


#: CLIs that show more than hooks.
WITNESSED: Final = ("claude", "codex", "copilot", "gemini")


def agent_of(agent: str) -> Agent:
    """Return the CLI of an agent."""
    return _loaded_cli(known_agent(agent))


def all_agents() -> tuple[Agent, ...]:
    """Return all of them, the first one first."""
    return tuple(map(agent_of, KEYS))


def installable() -> tuple[Agent, ...]:
    """Return those whose hooks bellboard can install."""
    return tuple(cli for cli in all_agents() if cli.hooks is not None)


@cache
def _loaded_cli(agent: str) -> Agent:
    module = module_of(agent, "cli")
    found: Agent = module.CLIS[agent] if agent in CHATS else module.CLI
    return found
