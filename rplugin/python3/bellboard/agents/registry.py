"""The agents that bellboard knows; each is loaded when it is first needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ..core.program_status import Report

if TYPE_CHECKING:
    from .agent import Agent

#: Names in evidence of plugins with chats inside Neovim, which share one class.
CHATS: Final = ("codecompanion", "agentic")
#: Name of an agent in evidence → its module here, and its class.
_AGENTS: Final = {
    "claude": ("claude.agent", "ClaudeCode"),
    "codex": ("codex.agent", "Codex"),
    "opencode": ("opencode.agent", "OpenCode"),
    "copilot": ("copilot.agent", "Copilot"),
    "qwen": ("qwen", "Qwen"),
    "gemini": ("gemini", "Gemini"),
    "pi": ("pi", "Pi"),
    "kimi": ("kimi", "Kimi"),
    "cursor": ("documented", "CursorCli"),
    "droid": ("documented", "Droid"),
    "goose": ("documented", "Goose"),
    "antigravity": ("documented", "Antigravity"),
    "amp": ("documented", "Amp"),
    "crush": ("documented", "Crush"),
    **dict.fromkeys(CHATS, ("documented", "Chat")),
}
#: Names of agents; evidence that names no agent is of the first.
KEYS: Final = tuple(_AGENTS)
#: Those that are programs.
STARTABLE: Final = tuple(key for key in KEYS if key not in CHATS)
#: Agents that show more than hooks.
WITNESSED: Final = ("claude", "codex", "opencode", "copilot", "gemini")
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
#: Environment variable with the process that runs the hooks → its agent.
RUNNERS: Final = {"COPILOT_LOADER_PID": "copilot"}
#: Variables that say inside what a program runs: an agent, or a Neovim.
NESTED: Final = (
    *("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_JOB_DIR"),
    *("CLAUDE_CODE_PARENT_SESSION_ID", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SESSION_ID"),
    *("CLAUDE_PID", "NVIM", "NVIM_LISTEN_ADDRESS"),
)
#: Name of an agent in its own report → its name in evidence, if different.
APPS: Final = {"claude-code": KEYS[0]}
_APP: Final = re.compile(r"[A-Za-z0-9_.+-]{1,32}", re.ASCII)
#: Agent that could not be loaded → the reason, kept because thousands of events may need it.
_failed: Final[dict[str, str]] = {}


def is_known_agent(agent: str) -> bool:
    """Return whether bellboard knows the agent's own words."""
    return agent in _AGENTS


def unnested(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for programs that do not run inside what we run in."""
    return {name: value for name, value in environ.items() if name not in NESTED}


def agent_of_program(app: str, command: str) -> str:
    """Return the agent of a program: by the name in its own report, or by its command."""
    named = next((name for name in (app, command) if _APP.fullmatch(name)), "program")
    return APPS.get(named, named)


def status_reported(agent: str, report: Report) -> str:
    """Return the status in a program's own report: a word of the protocol, or `background`."""
    return agent_of(agent).reported(report) if is_known_agent(agent) else report.state


def agent_of(key: str) -> Agent:
    """Return the agent of this name; for an unknown name, the first agent."""
    return _loaded(key if is_known_agent(key) else KEYS[0])


def all_agents() -> tuple[Agent, ...]:
    """Return all agents in order."""
    return tuple(map(agent_of, KEYS))


def installable() -> tuple[Agent, ...]:
    """Return the agents whose hooks bellboard can install."""
    return tuple(agent for agent in all_agents() if agent.hooks is not None)


def printable() -> tuple[Agent, ...]:
    """Return the agents whose hooks bellboard can only print."""
    return tuple(agent for agent in all_agents() if agent.place)


def measured() -> tuple[Agent, ...]:
    """Return the agents that were seen to run; others are known by their documentation only."""
    return tuple(agent for agent in all_agents() if agent.abilities)


def try_again() -> None:
    """Allow another try to load the agents that could not be loaded."""
    _failed.clear()


@cache
def _loaded(key: str) -> Agent:
    """Load an agent, and no other: all of them take longer than most commands.

    Raise ImportError if its file is of another version, or half written; after that, without
    another try until `try_again`.  An error of the system is raised as it is.
    """
    if key in _failed:
        raise ImportError(_failed[key])
    module, name = _AGENTS[key]
    try:
        made = getattr(import_module(f".{module}", __package__), name)
        found: Agent = made(key) if key in CHATS else made()
    except (MemoryError, OSError):
        raise
    except Exception as e:
        _failed[key] = f"{module}: {e}"
        raise ImportError(_failed[key]) from e
    return found
