"""What the simulated agents do, each in its project."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from demo.agent import Agent


def api(agent: Agent) -> None:
    agent.prompt("add rate limits to the public endpoints")
    agent.work(0.8)
    agent.tool("Read", "src/limiter.py", 0.8, file_path="src/limiter.py")
    agent.tool("Edit", "src/limiter.py", 0.8, file_path="src/limiter.py")
    if agent.permission("rm -rf build && make all", "Build from scratch"):
        agent.tool("Bash", "make test", 3, command="make test", description="Run the tests")
        agent.stop("Rate limits are in: 60 requests a minute, tests pass.")
    else:
        agent.work(1.5)
        agent.stop("Then I leave the build alone. The limiter itself is done.")


def web(agent: Agent) -> None:
    agent.prompt("fix the login redirect and test it")
    agent.work(1.5)
    agent.tool("Grep", '"redirect_to"', 1.0, pattern="redirect_to")
    agent.tool("Read", "src/login.ts", 0.8, file_path="src/login.ts")
    chosen = agent.question(
        "Which database should the tests use?",
        "Database",
        "PostgreSQL in a container",
        "SQLite in memory",
    )
    if chosen:
        agent.tool("Write", "tests/login.test.ts", 3, file_path="tests/login.test.ts")
        agent.stop(f"The redirect keeps its query now; the tests use {chosen}.")
    else:
        agent.stop("The redirect keeps its query now. I leave the tests to you.")


def dotfiles(agent: Agent) -> None:
    agent.prompt("tidy the zsh prompt")
    agent.work(1.2)
    agent.tool("Edit", ".zshrc", 2.2, file_path=".zshrc")
    agent.stop("The prompt is one line now and starts twice as fast.")


def infra(agent: Agent) -> None:
    agent.prompt("plan the new region")
    agent.tool("Bash", "terraform plan", 2.6, command="terraform plan", description="Plan")
    agent.fail("overloaded", "the service is overloaded, try again later")


def docs(agent: Agent) -> None:
    agent.prompt("serve the manual while I write")
    agent.tool("Bash", "mkdocs serve", 1.2, command="mkdocs serve", run_in_background=True)
    shell = {"id": "b1", "type": "shell", "status": "running", "command": "mkdocs serve"}
    agent.stop("The manual is served on port 8000.", [{**shell, "description": "mkdocs serve"}])


def cache(agent: Agent) -> None:
    agent.prompt("put a cache in front of the database, with tests")
    files = ("src/cache.py", "src/store.py", "src/expiry.py", "tests/test_cache.py")
    agent.plan(*files)
    agent.delegate("Explore")
    for turn in range(60):
        file = files[turn % len(files)]
        if 0 < turn <= len(files):
            agent.done(turn - 1)
        agent.work(2.5)
        agent.tool("Edit", file, 3.5, file_path=file)
    agent.stop("The cache is in, hit rate 93 %.")


SCENES: dict[str, tuple[str, Callable[[Agent], None]]] = {
    "api": ("acme/api on main", api),
    "cache": ("acme/api on cache", cache),
    "web": ("acme/web on fix/login", web),
    "dotfiles": ("dotfiles on main", dotfiles),
    "infra": ("acme/infra on main", infra),
    "docs": ("acme/docs on main", docs),
}
