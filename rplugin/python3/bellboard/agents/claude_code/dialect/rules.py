"""The rule that would spare a question, as settings of Claude Code have it: `Bash(make test)`.

It is the narrowest one that works, and exists only where the CLI itself would offer a rule.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from ....core.text import line
from ....core.untrusted import Facts, list_of

BASH: Final = "Bash"
SETTINGS: Final = ".claude/settings.local.json"  # in the project
#: A command whose text is a rule for it alone: without wildcards, and without a second command.
_PLAIN: Final = re.compile(r"""[\w./:=@%+,"' -]+(?<!:)""")
_TOOL: Final = re.compile(r"mcp__[\w-]+__[\w-]+")
_HOST: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?::\d+)?(?:[/?#]|$)")
#: The first words of a command that a rule may cover: a program and what it is to do.
_PREFIX: Final = re.compile(r"[a-z][\w.-]* [a-z][\w:.-]*")
#: First words of commands that run what follows: a rule for these would allow anything.
_RUNS_ANYTHING: Final = re.compile(
    r"(?:(?:ba|z|da|fi|k|c)?sh|python[\d.]*|node|deno|bun|ruby|perl|php|lua|g?awk|find|xargs|env|npx"
    r"|uvx|sudo|doas|su|nice|nohup|time|timeout|watch|ssh|docker|podman|kubectl|eval|exec|source"
    r"|rm|dd) .*"
    r"|\S+ (?:exec|dlx|x|eval|shell)|(?!npm |pnpm |yarn )\S+ run"
)


#: Programs that alone run what they are given on their input.
_READS_ANYTHING: Final = re.compile(
    r"(?:\S*/)?(?:(?:ba|z|da|fi|k|c)?sh|python[\d.]*|node|deno|bun|ruby|perl|php|lua|xargs)"
    r"(?: -\S*)*"
)


class Rule(NamedTuple):
    """A rule of the list `permissions.allow`."""

    tool: str
    content: str = ""

    def __str__(self) -> str:
        return f"{self.tool}({self.content})" if self.content else self.tool


def rule_of(tool: str, given: Facts, suggestions: Any) -> Rule | None:
    """Return the rule that allows this from now on; None if there is no sensible one."""
    offered = {content for name, content in _suggested(suggestions) if name == tool}
    if not offered:
        return None
    if tool == BASH:
        return _command_rule(given.get("command"), offered)
    if tool == "WebFetch":
        url = given.get("url")
        host = _HOST.match(url) if isinstance(url, str) else None
        return Rule(tool, f"domain:{host[1].lower()}") if host else None
    return Rule(tool) if _TOOL.fullmatch(tool) else None


def runs_anything(start: str, is_exact: bool) -> bool:
    """Return whether a command that begins so, or is exactly that, runs what it is given."""
    if is_exact:
        return _READS_ANYTHING.fullmatch(start) is not None
    return _RUNS_ANYTHING.fullmatch(start) is not None or bool(_RUNS_ANYTHING.match(f"{start} "))


def line_of(tool: str, given: Any, suggestions: Any) -> str:
    """Return the rule as one line to show; "" if there is none, or it would have to be cut."""
    rule = rule_of(tool, given, suggestions) if isinstance(given, dict) else None
    text = str(rule or "")
    return text if line(text) == text else ""


def _suggested(suggestions: Any) -> list[tuple[str, str]]:
    """Return the tool and content of the rules that the CLI suggests to allow."""
    found = []
    for update in list_of(suggestions):
        if not isinstance(update, dict) or update.get("type") != "addRules":
            continue
        rules = update.get("rules")
        if update.get("behavior") == "allow" and isinstance(rules, list):
            found += [
                (rule["toolName"], str(rule.get("ruleContent") or ""))
                for rule in rules
                if isinstance(rule, dict) and isinstance(rule.get("toolName"), str)
            ]
    return found


def _command_rule(command: object, offered: set[str]) -> Rule | None:
    if not isinstance(command, str) or not _PLAIN.fullmatch(command):
        return None
    for content in sorted(offered, key=len, reverse=True):
        start = content.removesuffix(":*").removesuffix(" *")
        begins = content != start and f"{command} ".startswith(f"{start} ")
        if begins and _PREFIX.fullmatch(start) and not _RUNS_ANYTHING.fullmatch(start):
            return Rule(BASH, f"{start}:*")
    return Rule(BASH, command)
