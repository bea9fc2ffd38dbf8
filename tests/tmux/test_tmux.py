"""tmux, on real servers started by the tests."""

from __future__ import annotations

import asyncio
import os
import socket as sockets_of
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest

from bellboard.agents.need import RESCAN, Means, Need
from bellboard.agents.trace_line import from_line
from bellboard.core.evidence import Evidence
from bellboard.core.observing import Want
from bellboard.core.session import Session
from bellboard.hosting.preview import preview
from bellboard.system import tmux as tmux_module
from bellboard.system.notes import Notes
from bellboard.system.tmux import NewPane, Tmux, default_socket, in_shell, literal, sockets
from bellboard.system.watch import Unwatched, Written
from bellboard.witnesses.observer import observe_panes
from rig.home import Home
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually, leniency


@pytest.fixture
def ours(tmux: Server, monkeypatch: pytest.MonkeyPatch) -> Tmux:
    """Return the test's server as the host uses it, with more patience for a busy machine."""
    monkeypatch.setattr(tmux_module, "PATIENCE", PATIENCE)
    return Tmux(str(tmux.socket))


def test_panes_are_listed_with_what_joins_them_to_processes(tmux: Server, ours: Tmux) -> None:
    """Names may contain the separators of the list."""
    first = tmux.open(["sleep", "60"], session="a b|c äö")
    second = tmux.open(["sleep", "61"], session="two")
    found = {p.id: p for p in ours.panes() or ()}
    assert {first.id, second.id} == set(found)
    for pane in (first, second):
        eventually(lambda pane=pane: pane.ask("#{pane_current_command}") == "sleep")
        assert (pane.pid, pane.tty) == (found[pane.id].pid, found[pane.id].tty)


class Panes:
    """Observes the panes of sessions in a server."""

    def __init__(self, socket: str, generation: str = "g1") -> None:
        self._socket, self._now, self._found = socket, 0.0, list[Evidence]()
        self._means = Means(
            Unwatched(), self._found.append, lambda: self._now, {}, generation, since=0.0
        )
        self.notes = Notes()
        self._loop = asyncio.new_event_loop()
        self._need: Need | None = None
        self.about: dict[str, dict[str, Any]] = {}  # what else is known of the session in a pane

    def check(self, now: float, asked: Collection[str]) -> list[Evidence]:
        """Return the evidence of a complete check."""
        self._now = now
        self._found.clear()
        self._loop.run_until_complete(asyncio.wait_for(self._check(asked), PATIENCE))
        return [found for found in self._found if "pane" in found.line]

    def windows(self) -> list[Any]:
        """Return what the last check reported of the windows of sessions."""
        lines = [dict(line) for line, _ in self._found if "facts" in line]
        return [x["facts"]["window"] for x in lines]

    async def _check(self, asked: Collection[str]) -> None:
        want = Want("panes", (self._socket,))
        need = self._need or Need(want, self._means, Written(), self.notes, lambda *_: None)
        for pane in need.sessions.keys() - set(asked):
            need.leave(pane)
        for pane in asked:
            about = {"tmux": self._socket, "pane": pane, **self.about.get(pane, {})}
            need.take(pane, Session(pane, **about))
        if self._need is None:
            self._need = need
            need.start(observe_panes)
            await asyncio.sleep(0)
        need.stir(RESCAN)
        await asyncio.sleep(0)
        while not need.is_at_rest:
            await asyncio.sleep(0.001)

    def close(self) -> None:
        async def close() -> None:
            if self._need is not None:
                self._need.close()
            await asyncio.sleep(0)

        self._loop.run_until_complete(close())
        self._loop.close()


@pytest.fixture
def panes() -> Iterator[Callable[..., Panes]]:
    """Return a function that makes panes, and close them afterwards."""
    made: list[Panes] = []

    def make(*given: str) -> Panes:
        made.append(Panes(*given))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_dead_and_closed_panes_are_reported(
    tmux: Server, ours: Tmux, panes: Callable[..., Panes]
) -> None:
    """Each once, with the tty it had; asked for at most every 10 s."""
    keep, ends, closes = (tmux.open(["sh"]) for _ in range(3))
    socket = str(tmux.socket)
    ours_of = panes(socket)
    asked = {keep.id, ends.id, closes.id}
    ttys = {p.id: p.tty for p in (keep, ends, closes)}
    found = ours_of.check(100.0, asked)
    told = [dict(line)["pane"] for line, _ in found]
    assert [
        {"tmux": socket, "pane": p, "alive": True, "tty": ttys[p]} for p in sorted(asked)
    ] == told
    assert "pane" == from_line(found[0].line).kind
    ends.type("exit\n")
    eventually(lambda: ends.dead)
    tmux.run("kill-pane", "-t", closes.id)
    assert [] == ours_of.check(109.0, asked)
    gone = ours_of.check(111.0, asked)
    events = [from_line(line) for line, _ in gone]
    assert {("pane gone", ends.id), ("pane gone", closes.id)} == {
        (e.kind, e.origin.pane) for e in events
    }
    assert [] == ours_of.check(122.0, asked)
    tmux.run("kill-pane", "-t", keep.id)
    assert [] == ours_of.check(125.0, {keep.id})
    assert 1 == len(ours_of.check(85.0, {keep.id}))  # the clock was set back
    other = tmux.open(["sh"])
    first, again, later = (panes(socket, g).check(1.0, {other.id}) for g in ("g1", "g1", "g2"))
    assert first[0].key == again[0].key != later[0].key


def test_the_window_of_a_session_is_reported_at_once(
    tmux: Server, panes: Callable[..., Panes]
) -> None:
    """By the name that somebody gave it; the pane around a Neovim is not that of its sessions."""
    named, plain, around = (tmux.open(["sh"], session="c d") for _ in range(3))
    tmux.run("rename-window", "-t", named.id, "e: f.0")
    socket = str(tmux.socket)
    there = panes(socket)
    there.about[plain.id] = {"tty": plain.tty, "nvim": "/run/nvim.1"}
    was = [socket, "c d", 2, ""]
    there.about[around.id] = {"tty": "/dev/pts/999", "facts": {"window": was}}
    there.check(1.0, {named.id, plain.id, around.id})
    found = sorted(there.windows())
    assert [[], [socket, "c d", 0, "e: f.0"], [socket, "c d", 1, ""]] == found
    there.about[named.id] = {"facts": {"window": was}}
    tmux.run("kill-pane", "-t", named.id)
    there.check(20.0, {named.id})
    assert [] == there.windows()


def test_a_pane_without_a_proper_process_is_left_out() -> None:
    """The other panes of the same answer are read."""
    row = "%{} {} 0 $1 @1 /dev/pts/1 0 0"
    told = "\n".join([row.format(1, "²"), row.format(2, 4711), row.format(3, "9" * 5000)])
    assert [pane.id for pane in tmux_module._panes(told)] == ["%2"]


def test_when_the_server_is_gone_so_are_its_panes(
    tmux: Server, ours: Tmux, home: Home, panes: Callable[..., Panes]
) -> None:
    """A socket that is left over, or never existed, holds no panes."""
    pane = tmux.open(["sh"])
    there = panes(str(tmux.socket))
    assert ["pane"] == [from_line(f.line).kind for f in there.check(1.0, {pane.id})]
    tmux.run("kill-server")
    eventually(lambda: ours.panes() == [])
    assert ["pane gone"] == [from_line(f.line).kind for f in there.check(20.0, {pane.id})]
    assert [] == Tmux(str(home.root / "never")).panes()
    assert [] == Tmux(str(home.root / "never")).clients()
    assert [] == panes("relative").check(40.0, {pane.id})


def test_a_server_that_does_not_respond_is_left_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch, panes: Callable[..., Panes]
) -> None:
    """The server must neither stop the host nor end the sessions in it."""
    monkeypatch.setattr(tmux_module, "PATIENCE", 0.2)
    path = str(home.root / "deaf")
    there = panes(path)
    with sockets_of.socket(sockets_of.AF_UNIX) as deaf:
        deaf.bind(path)
        deaf.listen()
        begin = time.monotonic()
        assert [] == there.check(1.0, {"%1"})
        assert time.monotonic() - begin < 10.0 * leniency(1.0)
        assert "does not respond" in there.notes[f"tmux {path}"]
        assert Tmux(path).panes() is None
        tmux = Tmux(path)
        assert not tmux.jump("%1")
        assert "does not respond" in tmux.why
    assert [] == there.check(20.0, {"%1"})
    assert there.notes
    assert 1 == len(there.check(22.0, {"%1"}))
    assert not there.notes


def test_without_tmux_nothing_is_raised(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    """The program may be elsewhere, or uninstalled."""
    monkeypatch.setenv("PATH", str(home.tmp))
    tmux = Tmux(f"{home.tmp}/none.sock")
    assert (None, None, []) == (tmux.panes(), tmux.clients(), tmux.capture("%1"))
    assert "not installed" in tmux.why


def test_a_jump_shows_the_pane_on_the_client_that_asked(tmux: Server, ours: Tmux) -> None:
    """And leaves the other clients where they are."""
    here, _, there = (tmux.open(["sh"], session=s) for s in ("one", "one", "two"))
    tmux.run("select-window", "-t", here.id)
    first, second = tmux.attach("one"), tmux.attach("one")

    def shown() -> dict[str, str]:
        return {c.tty: c.pane for c in ours.clients() or ()}

    assert {first: here.id, second: here.id} == shown()
    assert ours.jump(there.id, client=first)
    assert {first: there.id, second: here.id} == shown()
    assert ours.jump(here.id, at=there.id)
    assert {first: here.id, second: here.id} == shown()
    assert not ours.jump(there.id, client="/dev/pts/none")
    assert "no client" in ours.why
    assert not ours.jump("%99")
    assert "its tmux pane %99 is gone" == ours.why
    assert not ours.jump(there.id, tty=here.tty + "9")
    assert "is gone" in ours.why
    assert not ours.jump("one:0")
    assert {first: here.id, second: here.id} == shown()


def test_a_jump_stays_in_the_session_that_has_the_window_too(tmux: Server, ours: Tmux) -> None:
    """Grouped sessions share windows; each client stays in its own session."""
    first, second = tmux.open(["sh"], session="one"), tmux.open(["sh"], session="one")
    tmux.run("new-session", "-d", "-t", "=one", "-s", "twin")
    tmux.run("select-window", "-t", "=one:0")
    tmux.run("select-window", "-t", "=twin:0")
    client = tmux.attach("twin")
    assert ours.jump(second.id, client=client)
    assert "twin" == tmux.run("display-message", "-p", "-t", client, "#{client_session}").strip()
    [found] = [c for c in ours.clients() or () if c.tty == client]
    assert second.id == found.pane
    assert first.id == tmux.run("display-message", "-p", "-t", "=one:", "#{pane_id}").strip()


def test_a_jump_without_any_client_selects_and_says_so(tmux: Server, ours: Tmux) -> None:
    """The next client that attaches sees it."""
    first, _ = tmux.open(["sh"]), tmux.open(["sh"])
    landing = ours.jump(first.id)
    assert landing is not None and landing.client is None
    assert "1" == first.ask("#{window_active}")


@pytest.mark.parametrize("shell", ["sh", "bash", "no-such-shell"])
def test_a_command_is_started_in_the_users_shell(home: Home, shell: str) -> None:
    """In its folder, in a session and server that are started; once it has ended, a shell is there.

    No format is expanded, and no word is read by a shell.
    """
    environ = {**home.env, "TMUX_TMPDIR": str(home.root), "SHELL": f"/bin/{shell}"}
    folder = home.project / "a 'b' #(touch pwned)\\"
    folder.mkdir()
    tmux = Tmux(default_socket(environ))
    session, name = literal("c#(x) work"), "e #(touch pwned)"
    words = ["printf", "[%s]", "x;", "it's\n\\", "$HOME", "${NVIM-none}"]
    try:
        first = tmux.begin(session, in_shell(words, str(folder)), name, environ)
        assert first, tmux.why
        second = tmux.open(f"={session}", in_shell(["sh", "-c", "pwd; sleep 60"], str(folder)))
        third = tmux.split(second.pane if second else "", in_shell(["echo", "third"], "/"))
        assert second and third, tmux.why

        def shows(pane: NewPane, text: str) -> None:
            eventually(lambda: text in "".join(tmux.capture(pane.pane)))

        shows(first, "[x;][it's\\][$HOME][${NVIM-none}]")
        shows(second, str(folder))
        shows(third, "third")
        assert {
            first.pane: (f"{session}:0.0", literal(name)),
            second.pane: (f"{session}:1.0", ""),
            third.pane: (f"{session}:1.1", ""),
        } == {p.id: (p.name, p.window_name) for p in tmux.panes() or ()}
        tmux.ask("send-keys", "-t", first.pane, "echo is $((6*7))", "Enter")
        shows(first, "is 42")
        assert not list(home.root.rglob("pwned"))
    finally:
        tmux.ask("kill-server")


def test_no_server_is_started_where_others_could_replace_it(home: Home) -> None:
    """Nor where there is no folder; the reason is said."""
    (home.root / "shared").mkdir()
    (home.root / "shared").chmod(0o777)
    for place, why in {"shared/s": "others may write to", "none/s": "No such file"}.items():
        tmux = Tmux(str(home.root / place))
        assert tmux.begin("x", ["true"], "", home.env) is None
        assert why in tmux.why


def test_a_preview_is_plain_text(tmux: Server, ours: Tmux) -> None:
    """The pane's text has no trailing blank lines; a pane that is gone has no preview."""
    pane = tmux.open(["sh", "-c", r"printf '\033[31mred\033[0m\n\n#[fg=red]x\n'; sleep 60"])
    pane.shows(r"fg=red\]x")
    assert ["red", "", "#[fg=red]x"] == ours.capture(pane.id)
    assert ["#[fg=red]x"] == ours.capture(pane.id, 1)
    assert [] == ours.capture("%99")
    assert [] == ours.capture("-p")


HOSTILE = [
    "#(touch pwned)",
    "##(touch pwned)",
    "####(touch pwned)#{E:@bellboard}",
    "#{l:x}#{pane_id}#[fg=red]#,#}",
    "x; kill-server",
    "x\n\x1b]0;owned\x07\n;kill-server;",
    "-u",
    "%3 $HOME `id` 'quoted\" ~ \\",
    "x;",
    ";",
    "x\\;",
    "\ud800",
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_an_option_is_text_however_often_it_is_expanded(
    tmux: Server, ours: Tmux, home: Home, text: str
) -> None:
    """A status line that expands it (`E:`, `T:`) runs and styles nothing."""
    pane = tmux.open(["sh"])
    ours.set_option("@bellboard", text)
    for form in ("#{@bellboard}", "#{E:@bellboard}", "#{T:@bellboard}"):
        assert literal(text) == tmux.run("display-message", "-p", "-t", pane.id, form).rstrip("\n")
    assert "#" not in literal(text)
    assert tmux.pid
    assert not list(home.root.rglob("pwned"))
    assert "pwned" not in os.listdir()  # noqa: PTH208


def test_an_option_that_is_not_the_users_own_is_refused(ours: Tmux) -> None:
    """tmux's own options may be commands."""
    for name in ("default-command", "@", "-g", "@a b", "@a;b"):
        with pytest.raises(ValueError, match="not a user option"):
            ours.set_option(name, "x")


def test_it_works_from_inside_another_tmux(
    tmux: Server, ours: Tmux, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller's own TMUX and TMUX_PANE change nothing."""
    pane = tmux.open(["sh"], session="one")
    monkeypatch.setenv("TMUX", "/tmp/another,1,0")
    monkeypatch.setenv("TMUX_PANE", "%77")
    assert [pane.id] == [p.id for p in ours.panes() or ()]


def test_servers_of_this_user_are_found_by_their_sockets(home: Home) -> None:
    """Below TMUX_TMPDIR, where tmux itself looks."""
    folder = home.root / f"tmux-{os.getuid()}"
    folder.mkdir()
    (folder / "file").write_text("")
    with sockets_of.socket(sockets_of.AF_UNIX) as server:
        server.bind(str(folder / "default"))
        assert [str(folder / "default")] == sockets({"TMUX_TMPDIR": str(home.root)})
    assert [] == sockets({"TMUX_TMPDIR": str(home.root / "nowhere")})


def test_a_preview_leaves_out_most_of_what_is_empty(tmux: Server) -> None:
    """The screen of an agent is empty above its prompt; the colors stay where they are."""
    told = "printf 'top\\n\\n\\n\\n\\033[31mred\\033[0m\\n\\nend\\n'; exec sleep 60"
    pane = tmux.open(["sh", "-c", told])
    pane.shows("end")
    where = {"tmux": str(tmux.socket), "pane": pane.id, "tty": pane.tty}
    shown = preview({"session_id": "s", "status": "idle", **where})
    assert shown["rows"] == ["top", "", "red", "", "end"]
    assert [span[:3] for span in shown["spans"]] == [(2, 0, 3)]
