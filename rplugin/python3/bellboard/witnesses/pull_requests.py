"""Look up the pull request of a branch with `gh`, if the user enabled that.

`gh` uses the network, so it runs in the background, one at a time, and rarely for the same branch.
It does not run inside a working tree: there it would run git, which executes commands of a
repository's configuration.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from ..agents.need import JOINED, RESCAN, Need
from ..core.clock import is_recent
from ..core.evidence import learned
from ..core.text import line
from ..system.files import decoded
from ..system.mounts import near
from ..system.programs import run
from ..system.reach import reach

KEPT: Final = 300.0  # seconds that an answer is valid, even an empty one
MOST: Final = 200  # branches to remember
PATIENCE: Final = 20.0  # seconds for an answer; it usually takes one
PASSED: Final = ("HOME", "PATH", "GH_CONFIG_DIR", "GH_TOKEN", "GITHUB_TOKEN", "XDG_CONFIG_HOME")


class Branch(NamedTuple):
    """A branch, by the address of its repository."""

    remote: str  # https://github.com/owner/name
    name: str


class PullRequest(NamedTuple):
    """The pull request of a branch; all fields are empty if there is none."""

    name: str = ""  # #12
    state: str = ""  # open | merged | closed
    url: str = ""

    def facts(self) -> dict[str, object]:
        """Return the facts to report for a session."""
        named = {"pull_request": self.name, "pull_request_state": self.state}
        return {**named, "pull_request_url": self.url}


class PullRequests:
    """Runs `gh`, one at a time, and rarely for the same branch."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {name: environ[name] for name in PASSED if name in environ}
        self._answers: dict[Branch, tuple[float, PullRequest]] = {}
        self._one = asyncio.Lock()

    async def observe(self, need: Need) -> None:
        """Report the pull requests of sessions' branches."""
        branch = Branch(*need.want.of)
        told: dict[str, PullRequest] = {}  # by session
        while True:
            _, request = self._answers.get(branch, (0.0, PullRequest()))
            self._report(need, told, request)
            request = await self._ask(branch, need.means.clock())
            self._report(need, told, request)
            await need.news(JOINED, RESCAN)

    def _report(self, need: Need, told: dict[str, PullRequest], request: PullRequest) -> None:
        facts = request.facts()
        for sid, s in sorted(need.sessions.items()):
            if told.get(sid) != request and {**s.facts, **facts} != s.facts:
                need.report(learned(need.means.clock(), s, facts, of=s.cwd))
            told[sid] = request

    async def _ask(self, branch: Branch, now: float) -> PullRequest:
        """Return the pull request of a branch, at most `KEPT` seconds old."""
        async with self._one:
            when, known = self._answers.get(branch, (-KEPT, PullRequest()))
            if not is_recent(when, now, KEPT):
                self._answers[branch] = now, known
                found = await reach(partial(ask, branch, self._environ), "gh", PATIENCE + 1)
                if found is not None:
                    self._answers[branch] = now, found
                if len(self._answers) > MOST:
                    del self._answers[next(iter(self._answers))]
            return self._answers.get(branch, (now, known))[1]


def ask(branch: Branch, environ: Mapping[str, str]) -> PullRequest | None:
    """Run `gh`; return None if it gives no usable answer."""
    program = near("gh", environ.get("PATH", ""))
    if program is None:
        return None
    what = ("--state=all", "--limit=1", "--json=number,state,url", "--jq=.[0] // {}")
    argv = (program, "pr", "list", f"--repo={branch.remote}", f"--head={branch.name}", *what)
    env = {**environ, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}
    try:
        done = run(argv, PATIENCE, env, cwd="/")
    except (OSError, ValueError, subprocess.TimeoutExpired):  # no folder any more; a NUL in a name
        return None
    answer = decoded(done.output) if done.code == 0 else None
    if answer is None:
        return None
    number, state, url = (answer.get(key) for key in ("number", "state", "url"))
    if type(number) is not int or not isinstance(state, str) or not isinstance(url, str):
        return PullRequest()
    return PullRequest(f"#{number}", line(state.lower(), 20), line(url))
