"""The rig as pytest fixtures: clock, home, nvim, screen, tmux, api, watch, claude, eventually.

Skipped tests are listed at the end of a run, with the reason: something is not available here (and
how to get it), or the layer was left out on purpose (BELLBOARD_SKIP="live tmux"). With
BELLBOARD_WHOLE=1, as in CI, anything not available is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from rig import DATA, waiting
from rig import home as homes
from rig import tmux as tmuxes
from rig.agents import agent
from rig.agents.api import Api
from rig.clock import Clock
from rig.editor import Editor
from rig.fetched import claude_code, neovim
from rig.fetched.cache import Missing
from rig.home import Home
from rig.machines.loopback import Watch
from rig.machines.stranger import Stranger
from rig.screen import Picture

T = TypeVar("T")
VERSIONS = neovim.wanted()
SCREENS = DATA / "screens"


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until `advance`."""
    return Clock()


@pytest.fixture
def eventually() -> Any:
    """eventually(predicate, what="", within=PATIENCE): the predicate's first true value."""
    return waiting.eventually


@pytest.fixture
def home() -> Iterator[Home]:
    """Isolated folders, and an environment (`home.env`) that inherits nothing."""
    made = homes.build()
    yield made
    homes.remove(made)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Each Neovim of BELLBOARD_NVIMS in turn; see neovim.wanted."""
    return str(request.param)


class Editors:
    """nvim(version, config): a new editor, stopped at the end of the test."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.opened: list[Editor] = []

    def __call__(
        self,
        version: str = VERSIONS[-1],
        config: Mapping[str, Any] | None = None,
        *,
        lua: str = "",
        peers: Sequence[str] = (),
        columns: int = 80,
        lines: int = 24,
        ui: bool = True,
        env: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        home: Home | None = None,
    ) -> Editor:
        """Start a Neovim; `config` is g:bellboard, None leaves the plugin out."""
        start: dict[str, Any] = {"config": config, "lua": lua, "peers": peers, "args": args}
        start |= {"columns": columns, "lines": lines, "ui": ui, "env": env or {}}
        editor = Editor(version, home or self.home, f"nvim{len(self.opened)}", **start)
        self.opened.append(editor)
        return editor

    def shown(self) -> str:
        """Return the screens, for the report of a failure."""
        return "\n".join(editor.screen.text for editor in self.opened if editor.shown)


@pytest.fixture
def nvim(home: Home) -> Iterator[Editors]:
    """nvim(version, config, …) → Editor: .nvim, .lua(), .command(), .press(), .screen, .shows()."""
    editors = Editors(home)
    yield editors
    for editor in editors.opened:
        editor.close()


class SharedEditors(Editors):
    """As `Editors`, but those who ask for the same editor get the same, without what was open."""

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.known: dict[str, Editor] = {}

    def __call__(
        self,
        version: str = VERSIONS[-1],
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Editor:
        wanted = repr((version, config, options))
        editor = self.known.get(wanted)
        if editor is None or editor.process.poll() is not None:
            editor = self.known[wanted] = super().__call__(version, config, **options)
        editor.afresh()
        return editor


@pytest.fixture(scope="module")
def shared() -> Iterator[Editors]:
    """As `nvim`, with one editor for all tests of a file that ask for the same: it costs less."""
    made = homes.build()
    editors = SharedEditors(made)
    yield editors
    for editor in editors.opened:
        editor.close()
    homes.remove(made)


class Screens:
    """screen(editor): what it shows; screen.matches(editor, name): compare it with a file."""

    def __init__(self, rewrite: bool) -> None:
        self.rewrite = rewrite

    def __call__(self, editor: Editor) -> Picture:
        """Return the current screen."""
        return editor.screen

    def matches(self, editor: Editor, name: str, within: float = waiting.PATIENCE) -> None:
        """Wait until the screen equals data/screens/NAME.txt (or NAME@VERSION.txt, if there)."""
        own = SCREENS / f"{name}@{editor.version}.txt"
        path = own if own.exists() else SCREENS / f"{name}.txt"
        if self.rewrite:
            path.write_text(str(self.settled(editor)))
            return
        if not path.exists():
            pytest.fail(f"no {path}; run pytest --update-screens and review it", pytrace=False)

        def compare() -> bool:
            expected, actual = path.read_text(), str(editor.screen)
            assert expected == actual, f"{path.name} differs; it shows now:\n{actual}"
            return True

        waiting.eventually(compare, within=within)

    def settled(self, editor: Editor) -> Picture:
        """Return the screen once it has stopped changing."""
        same: list[Picture] = []

        def still() -> bool:
            if same and same[-1] != editor.screen:
                same.clear()
            same.append(editor.screen)
            return len(same) > 20

        waiting.eventually(still, "a screen at rest")
        return same[-1]


@pytest.fixture
def screen(request: pytest.FixtureRequest) -> Screens:
    """screen(editor) → Picture: .lines, .text, .groups_of(text); .matches(editor, name)."""
    return Screens(bool(request.config.getoption("--update-screens")))


@pytest.fixture
def tmux(home: Home) -> Iterator[tmuxes.Server]:
    """A tmux server on its own socket: .open(argv) → Pane, .run(…); stopped at the end."""
    server = tmuxes.Server(home)
    yield server
    server.close()


@pytest.fixture
def api() -> Iterator[Api]:
    """The fake API: .url, .requests, .pace, .hold(), .release(), .scenarios."""
    with Api() as running:
        yield running


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Fail the test if a watched process connected to another machine."""
    with Watch() as running:
        yield running
    assert running.spoke_out() == set()


class Agents:
    """claude(…): a new CLI in its own tmux session; claude.prepare(…): how to start one."""

    def __init__(self, home: Home, api: Api, watch: Watch, tmux: tmuxes.Server) -> None:
        self.home, self.api, self.watch, self.tmux = home, api, watch, tmux
        self.started: list[agent.Agent] = []

    def prepare(
        self,
        *args: str,
        version: str = claude_code.VERSION,
        settings: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> agent.Launch:
        """Return a Launch: .command (with its whole environment), .argv, .env, .cwd."""
        assert version in claude_code.VERSIONS, f"{version} belongs into VERSIONS of claude_code.py"
        more: dict[str, Any] = {"version": version, "settings": settings, "env": env, "cwd": cwd}
        self.watch.old |= version != claude_code.VERSION
        return agent.prepare(self.home, self.api, self.watch, args=args, **more)

    def __call__(self, *args: str, session: str = "", **how: Any) -> agent.Agent:
        """Start a session, ready for a prompt; `args` are the CLI's, `how` is as in prepare."""
        name = session or f"agent{len(self.started)}"
        started = agent.Agent.start(self.prepare(*args, **how), self.tmux, name, self.watch)
        self.started.append(started)
        return started

    def shown(self) -> str:
        """Return the terminals, for the report of a failure."""
        return "\n".join(each.text() for each in self.started)


@pytest.fixture
def claude(home: Home, api: Api, watch: Watch, tmux: tmuxes.Server) -> Agents:
    """claude(*args, version=…, settings=…, env=…, cwd=…) → Agent, ready for a prompt."""
    return Agents(home, api, watch, tmux)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-screens", action="store_true", help="rewrite data/screens from what is shown"
    )
    how = "play the tests on real CLIs, too: all, or all but those on old versions"
    parser.addoption("--live", choices=("all", "short"), help=how)


def skipped() -> list[str]:
    """Return the layers left out on purpose."""
    return os.environ.get("BELLBOARD_SKIP", "").replace(",", " ").split()


def dealt(slow: Sequence[T], usual: Sequence[T], brief: Sequence[T], workers: int) -> list[T]:
    """Return an order in which each worker begins with its share of the slow ones.

    Workers get equal parts of it, one after the other, and those that are done take from the ends
    of the others; only if each begins with the slow ones and ends with brief ones does nobody wait
    at the end.
    """
    order: list[T] = []
    count = len(slow) + len(usual) + len(brief)
    for worker in range(workers):
        left = workers - worker
        size = (count - len(order)) // left
        own = slow[worker::workers]
        some = max(0, min(len(usual) // left, size - len(own)))
        rest = max(0, size - len(own) - some)
        order += [*own, *usual[:some], *brief[:rest]]
        usual, brief = usual[some:], brief[rest:]
    return order


def brevity(item: pytest.Item, limit: float) -> int:
    """Return 0 for a test that may take longer than usual, 2 for one that takes milliseconds."""
    own = item.get_closest_marker("timeout")
    if own and own.args[0] > limit:
        return 0
    return 2 if any(map(item.get_closest_marker, ("core", "quick", "house"))) else 1


def plays(item: pytest.Item, live: str | None) -> bool:
    """Return whether a test belongs to this run: those on real CLIs are for `make live`."""
    if live == "all" or not item.get_closest_marker("live"):
        return True
    if not live:
        return item.get_closest_marker("smoke") is not None
    drawn: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    return drawn.get("version") not in claude_code.OLD


@pytest.hookimpl(trylast=True)  # once it is known which tests run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    live = config.getoption("live")
    if left := [item for item in items if not plays(item, live)]:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if plays(item, live)]
    if (workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))) > 1:
        usual = float(config.getini("timeout"))
        kinds: tuple[list[pytest.Item], ...] = [], [], []
        for item in items:
            kinds[brevity(item, usual)].append(item)
        items[:] = dealt(*kinds, workers)
    known = {line.partition(":")[0] for line in config.getini("markers")}
    if strange := set(skipped()) - known:
        raise pytest.UsageError(f"BELLBOARD_SKIP names no layer: {', '.join(sorted(strange))}")
    for item in items:
        for layer in skipped():
            if item.get_closest_marker(layer):
                item.add_marker(pytest.mark.skip(reason=f"BELLBOARD_SKIP={layer}"))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was left out: how many tests of which files, by reason."""
    if not terminalreporter.config.getoption("live"):
        terminalreporter.write_line("tests on real CLIs, but one each: make live")
    reasons: dict[str, list[str]] = {}
    for report in terminalreporter.getreports("skipped"):
        if isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            reasons.setdefault(reason, []).append(report.nodeid)
    for reason, tests in sorted(reasons.items(), key=lambda item: -len(item[1])):
        files = sorted({test.partition("::")[0].rpartition("/")[2] for test in tests})
        some = tests[0] if len(tests) == 1 else f"{len(tests)} tests in {' '.join(files)}"
        terminalreporter.write_line(f"left out: {some}: {reason}", yellow=True)
    if layers := skipped():
        line = f"skipped layers: {', '.join(layers)} (BELLBOARD_SKIP)"
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: Any = yield
    if call.excinfo and call.excinfo.errisinstance(Missing):
        report.longrepr = f"cannot be had: {call.excinfo.value}"
        if not os.environ.get("BELLBOARD_WHOLE"):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"Skipped: {call.excinfo.value}")
    if report.when == "call" and report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            shows = isinstance(value, Editors | Agents | tmuxes.Server | Home)
            if shows and (text := value.shown()):
                report.sections.append((f"what {name} shows", text))
    return report


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    """Another user of this machine, with sockets of their own."""
    made = Stranger()
    yield made
    made.close()
