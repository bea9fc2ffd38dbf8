"""`bellboard restore`: what it lists, refuses and opens, with a CLI that shows its arguments."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bellboard.core.board import Board
from bellboard.core.text import width
from bellboard.storage.store import Store
from bellboard.system.processes import started_of
from rig import warm
from rig.home import Home
from rig.ruins import Ruins
from rig.waiting import eventually


@pytest.fixture
def ruins(home: Home) -> Iterator[Ruins]:
    made = Ruins(home)
    yield made
    made.server.close()


def test_each_session_is_opened_where_it_was(ruins: Ruins) -> None:
    """Its tmux session and window by name, panes of one window together; a second time nothing."""
    ruins.session("one", "work", 1, "edit")
    ruins.session("two", "work", 1, "edit")
    ruins.session("three", "side", 0, "")
    ruins.session("four")
    ruins.session("lives", "work", 2, "", holder=f"{os.getpid()} {started_of(os.getpid())}")
    ruins.session("left", "work", 3, "", reason="prompt_input_exit")
    listed = ruins.run("--list")
    assert "4 sessions went down with their terminals" in listed
    assert ["1m", "project", "tmux", "work:edit", "do", "one"] in map(
        str.split, listed.splitlines()
    )
    assert "Neovim, now tmux side" in listed
    assert not ruins.server.pid
    assert "nothing was restored, as nobody can be asked here" in ruins.run(code=1)
    assert "4 sessions restored" in ruins.run("--yes")
    wanted = [f"{ruins.home.project}: --resume {sid}" for sid in ("four", "one", "three", "two")]
    eventually(lambda: sorted(ruins.told()) == wanted)
    opened = ["side:0.0 ", "side:1.0 ", "work:0.0 edit", "work:0.1 edit"]
    assert opened == sorted(ruins.windows())
    assert "Nothing to restore" in ruins.run("--yes")
    assert [] == ruins.ids()
    assert 4 == len(ruins.told())
    ruins.server.close()  # and none of them has reported anything since
    assert ["four", "one", "three", "two"] == sorted(ruins.ids())


def test_what_cannot_be_restored_says_why_and_the_others_go_on(ruins: Ruins) -> None:
    """A folder, a transcript, a program, a tmux; each is still listed the next time."""
    ruins.session("one", "work", 0, "")
    ruins.session("no-folder", "work", 1, "", cwd="/no such folder")
    ruins.session("silent", "work", 2, "", transcript_path="/no such file")
    ruins.session("gemini", "work", 3, "", agent="gemini")
    ruins.session("nowhere")
    done = ruins.run("--yes")
    assert "not restored: Gemini CLI resumes no session by its id" in done
    assert "not restored: its folder is gone: /no such folder" in done
    assert "not restored: its transcript is gone: /no such file" in done
    assert "2 sessions restored" in done
    ruins.session("later")
    ruins.server.close()
    done = ruins.run("--yes", "later")
    assert "`:Bellboard restore` opens it in Neovim" in done
    assert "claude is not on PATH" in ruins.run("--list", PATH="/bin")
    assert {"no-folder", "silent", "gemini", "later", "one", "nowhere"} == set(ruins.ids())


def test_two_at_once_open_each_session_once(ruins: Ruins) -> None:
    """The second one finds what is left, and says so."""
    ids = [f"s{n}" for n in range(6)]
    for n, sid in enumerate(ids):
        ruins.session(sid, "work", n, sid)
    with ThreadPoolExecutor(2) as both:
        done = [both.submit(ruins.run, "--yes", "--json") for _ in range(2)]
        found = [json.loads(each.result()) for each in done]
    restored = [x["session_id"] for each in found for x in each["restored"]]
    assert ids == sorted(restored)
    eventually(lambda: len(ruins.told()) == len(ids))


def test_some_are_chosen_or_dismissed(ruins: Ruins, home: Home) -> None:
    """By id or name; what was dismissed is not offered again, unless it goes down again."""
    for sid in ("one", "two", "three"):
        ruins.session(sid, "work", 0, "")
    assert ["one", "two", "three"] == ruins.ids()
    assert "no session matches do t; did you mean do three or do two?" in ruins.run("do t", code=1)
    assert "run `bellboard restore --list` to see" in ruins.run("nobody", code=1)
    assert "3 sessions match project: " in ruins.run("project", code=1)
    assert "1 session restored" in ruins.run("--yes", "do two")
    assert "1 session no longer offered" in ruins.run("--dismiss", "one")
    assert ["three"] == ruins.ids()
    assert "two: did not go down, or was restored since" in ruins.run("--yes", "two", code=1)
    ruins.t = time.time()
    ruins.session("one", "work", 0, "", holder="999999998 1")
    assert {"one", "three"} == set(ruins.ids())
    assert "--neovim needs --yes and --json" in ruins.run("--neovim", code=1)
    left = json.loads(ruins.run("--yes", "--json"))
    [record, _] = left["restored"]
    assert {
        "agent": "claude",
        "argv": ["claude", "--resume", "one"],
        "directory": str(home.project),
        "place": {
            "kind": "tmux",
            "socket": str(ruins.server.socket),
            "session": "work",
            "number": 0,
        },
    } == {key: record[key] for key in ("agent", "argv", "directory", "place")}


def test_a_long_name_leaves_room_for_the_others(ruins: Ruins) -> None:
    """No row is broken in a narrow terminal, and each says what its session did."""
    cwd = ruins.home.project / "a-very-long-name-of-a-repository-of-many-parts"
    cwd.mkdir()
    ruins.session("one", "a-session-with-a-long-name", 1, "and-a-window", cwd=str(cwd))
    ruins.session("two", "work", 1, "edit")
    shown = ruins.run("--list", COLUMNS="60")
    assert max(map(width, shown.splitlines())) <= 60
    assert re.search(r"a-very-long-na…  tmux a-session-with…  do one\n", shown)
    assert re.search(r"project +tmux work:edit +do two\n", shown)


def test_a_neovim_that_asks_gets_its_own(ruins: Ruins, home: Home) -> None:
    """What was in no tmux is left to it; it counts as restored."""
    ruins.session("one", "work", 0, "")
    ruins.session("two")
    done = json.loads(ruins.run("--yes", "--json", "--neovim"))
    assert [["one"], ["two"], []] == [
        [x["session_id"] for x in done[key]] for key in ("restored", "open", "failed")
    ]
    assert [] == ruins.ids()
    eventually(lambda: ruins.told() == [f"{home.project}: --resume one"])


@pytest.mark.parametrize("ago", [60.0, 4.0, -4.0], ids=["looked", "served", "not known"])
def test_what_its_terminal_outlived_was_closed(ruins: Ruins, home: Home, ago: float) -> None:
    """A command sees that, or a host a moment after the end; if nobody did, it is offered."""
    holder = subprocess.Popen(["sleep", "60"])
    host = warm.Program(["-m", "bellboard", "serve"], env=home.env) if ago == 4.0 else None
    eventually(lambda: host is None or ruins.spool.hosts.alive())
    ruins.t = time.time() - ago
    ruins.session("one", "work", 0, "", holder=f"{holder.pid} {started_of(holder.pid)}")
    assert [] == ruins.ids()

    def closed() -> bool:
        store, board = Store(home.bellboard), Board()
        store.refresh(board)
        store.close()
        return "closed" in board.sessions["one"].facts

    eventually(lambda: closed() == (ago > 0))
    holder.kill()
    holder.wait()
    if host is not None:
        host.terminate()
        host.wait()
    assert ["one"] * (ago < 0) == ruins.ids()
