"""The pull request of a branch, as `gh` tells it; asked only by who has configured it.

`gh` goes to the network, so it runs beside everything, one at a time, and a branch is asked for
again only after a while.  It stands in no working tree, for there it would run git, and git runs
what a repository's configuration says.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ..core.detail import line
from .witness import decoded

KEPT: Final = 300.0  # seconds that an answer is good for, also that there is none
MOST: Final = 200  # branches remembered
PATIENCE: Final = 20.0  # for an answer; a second is usual
LIMIT: Final = 1 << 16  # bytes of it
PASSED: Final = ("HOME", "PATH", "GH_CONFIG_DIR", "GH_TOKEN", "GITHUB_TOKEN", "XDG_CONFIG_HOME")


class Branch(NamedTuple):
    """A branch, by the address of its repository."""

    remote: str  # https://github.com/owner/name
    name: str


class PullRequest(NamedTuple):
    """Of a branch; all empty if it has none."""

    name: str = ""  # #12
    state: str = ""  # open | merged | closed
    url: str = ""

    def facts(self) -> dict[str, object]:
        """As facts of a session."""
        named = {"pull_request": self.name, "pull_request_state": self.state}
        return {**named, "pull_request_url": self.url}


class PullRequests:
    """Asks in the loop that runs, and calls `told(branch)` when an answer is another one."""

    def __init__(self, told: Callable[[Branch], None], environ: Mapping[str, str]) -> None:
        self._told = told
        self._program = shutil.which("gh", path=environ.get("PATH"))
        self._environ = {name: environ[name] for name in PASSED if name in environ}
        self._answers: dict[Branch, tuple[float, PullRequest]] = {}
        self._waiting: dict[Branch, None] = {}
        self._asking: asyncio.Task[None] | None = None

    def of(self, branch: Branch, now: float) -> PullRequest:
        """As last told; if that is long ago, it is asked for beside."""
        when, known = self._answers.get(branch, (-KEPT, PullRequest()))
        is_one = branch.remote.startswith("https://") and branch.name
        if self._program and is_one and not when <= now < when + KEPT:
            self._answers[branch] = now, known
            if len(self._answers) > MOST:
                del self._answers[next(iter(self._answers))]
            self._waiting[branch] = None
            if self._asking is None:
                self._asking = asyncio.get_running_loop().create_task(self._ask_all())
        return known

    def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()

    async def _ask_all(self) -> None:
        try:
            while self._waiting:
                branch = next(iter(self._waiting))
                del self._waiting[branch]
                found = await self._ask(branch)
                when, known = self._answers.get(branch, (0.0, PullRequest()))
                if found is not None and found != known:
                    self._answers[branch] = when, found
                    self._told(branch)
        finally:
            self._asking = None

    async def _ask(self, branch: Branch) -> PullRequest | None:
        """None if there is no answer now."""
        what = ("--state=all", "--limit=1", "--json=number,state,url", "--jq=.[0] // {}")
        argv = ("pr", "list", f"--repo={branch.remote}", f"--head={branch.name}", *what)
        null, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        env = {**self._environ, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}
        try:
            process = await asyncio.create_subprocess_exec(
                str(self._program), *argv, stdin=null, stdout=pipe, stderr=null, cwd="/", env=env
            )
        except (OSError, ValueError):  # gone meanwhile; a NUL in a name
            return None
        try:
            assert process.stdout is not None
            raw = await asyncio.wait_for(process.stdout.read(LIMIT), PATIENCE)
            code = await asyncio.wait_for(process.wait(), PATIENCE)
        except asyncio.TimeoutError:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        told = decoded(raw) if code == 0 else None
        if told is None:
            return None
        number, state, url = (told.get(key) for key in ("number", "state", "url"))
        if type(number) is not int or not isinstance(state, str) or not isinstance(url, str):
            return PullRequest()
        return PullRequest(f"#{number}", line(state.lower(), 20), line(url))
