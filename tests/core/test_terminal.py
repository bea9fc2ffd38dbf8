"""The output of the command line, in 60 and in 200 columns, with any text from agents."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.core import text, words
from bellboard.core.events import Event
from bellboard.core.records import Transition
from bellboard.screen import history, terminal
from bellboard.screen.picker import Selection as Picker
from bellboard.screen.styled import StyledText
from bellboard.storage.store import Logged
from rig import DATA
from rig.examples import examples
from rig.host.sample import activity, clone, dated, house

NOW = 1_800_000_000.0
SCREENS = DATA / "screens"
#: What a terminal acts on: C0, DEL, C1, and marks that change the writing direction.
ACTIVE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")

Published = dict[str, Any]


def published(**more: Any) -> Published:
    known = {"session_id": "0123456789", "status": "blocked", "since": NOW - 130}
    return {"hidden": False, "markers": [], "project": "api", **known, **more}


def everybody() -> list[Published]:
    """Return the sessions of the editor's screens, with those that only the command line shows."""
    more: dict[int, Published] = {
        2: {"nvim": "/run/user/1000/nvim.4242.0"},
        3: {"pid": 991, "label": "HEAVY"},
        4: {"tty": "/dev/pts/7"},
        5: {"markers": ["parked"]},
    }
    return [
        {**published(), "project": "", **dated(p, NOW), **more.get(n, {})}
        for n, p in enumerate(house())
    ]


def assert_shows(request: pytest.FixtureRequest, name: str, lines: list[str]) -> None:
    """Compare lines with a picture, or with --update-screens write it."""
    picture, shown = SCREENS / name, "\n".join(lines) + "\n"
    if request.config.getoption("--update-screens"):
        picture.write_text(shown)
    assert shown == picture.read_text()


def lines_of(sessions: list[Published], columns: int) -> list[str]:
    return [line.plain.rstrip() for line in terminal.table(sessions, NOW, columns)]


# ---------------------------------------------------------------- the words


class Noting(Published):
    """A published session that notes which of its fields are read."""

    def __init__(self, fields: Published) -> None:
        super().__init__(fields)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)


@pytest.mark.parametrize(
    "more",
    [
        {"project": ""},
        {"pane": "%4", "tmux": "/tmp/work", "name": "login"},
        {"nvim": "/run/nvim.42.0"},
        {"machine": "dev"},
    ],
    ids=["nowhere", "tmux", "Neovim", "another machine"],
)
def test_names_are_kept_only_while_all_that_they_are_made_of_is_the_same(more: Published) -> None:
    """`worded` reads no other field for names than it compares."""
    before = words.worded(Noting(published(**more)))
    now = Noting(published(**more, label="HEAVY", branch="next"))
    assert words.worded(now, before)["words"] == words.worded(now)["words"]
    alone = Noting(published(**more))
    words._named(alone)
    assert alone.read <= set(words.NAMING)


# ---------------------------------------------------------------- the table


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_the_table_matches_the_recorded_screen(
    columns: int, request: pytest.FixtureRequest
) -> None:
    """The screens are in tests/data/screens; --update-screens rewrites them."""
    assert_shows(request, f"cli-list-{columns}.txt", lines_of(everybody(), columns))


@pytest.mark.parametrize("columns", [60, 120])
def test_the_table_says_what_is_quiet_and_since_when(
    columns: int, request: pytest.FixtureRequest
) -> None:
    """And which tool has run for how long; what tries again, and a limit, are in its words."""
    assert_shows(
        request,
        f"cli-activity-{columns}.txt",
        lines_of([dated(p, NOW) for p in activity()], columns),
    )


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_the_table_tells_sessions_of_one_clone_apart(
    columns: int, request: pytest.FixtureRequest
) -> None:
    """Their work differs; one long branch takes no room from the others."""
    assert_shows(
        request, f"cli-clone-{columns}.txt", lines_of([dated(p, NOW) for p in clone()], columns)
    )


@pytest.mark.parametrize(
    ("agents", "names"),
    [
        (("make", "ninja"), ["app make", "app ninja"]),
        (("make", "make"), ["app 6079", "app 6137"]),
    ],
)
def test_programs_without_a_session_are_told_apart(
    agents: tuple[str, str], names: list[str]
) -> None:
    """By their agent, else by their process: the ids of all begin alike."""
    rows = [
        published(session_id=f"process-{pid}-505098", project="app", agent=agent, detail="")
        for pid, agent in zip((6079, 6137), agents, strict=True)
    ]
    assert [re.split("  +", line)[0] for line in lines_of(rows, 120)] == [f" ! {n}" for n in names]


def test_a_status_bar_counts_what_is_quiet() -> None:
    """Not a session whose tool has run all the time."""
    shown = [dated(p, NOW) for p in activity()]
    assert words.status_text(shown, NOW) == "x1 *4 (1 quiet)"


@pytest.mark.parametrize("columns", [40, 60, 69, 70, 89, 90, 120, 200])
def test_no_line_is_wider_than_the_screen(columns: int) -> None:
    long = published(
        detail="文" * 300,
        title="t" * 300,
        branch="b" * 99,
        repository="o/" + "r" * 99,
        label="x" * 20,
    )
    widths = [text.width(line) for line in lines_of([*everybody(), long], columns)]
    assert max(widths) <= columns


def test_a_narrow_table_still_says_who_and_what() -> None:
    who = lines_of([published(repository="acme/api", branch="main", detail="rm -rf build")], 40)
    assert who == [" ! api  main  blocked  rm -rf build   2m"]


@pytest.mark.parametrize("columns", range(40, 120, 7))
def test_a_place_is_whole_or_not_shown(columns: int) -> None:
    """A truncated address would be a different one: %1 for %16."""
    crowd = {"label": "IMPORTANT", "tasks": {"done": 30, "total": 70}, "markers": ["inferred"]}
    many = [published(project="a" * 30, branch="b" * 30, pane="%16", tmux="/t/lounge", **crowd)]
    (line,) = lines_of(many, columns)
    assert "tmux lounge/%16" in line or "%" not in line
    assert len(line) <= columns


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"pane": "%4", "tmux": "/tmp/tmux-1000/default"}, "tmux %4"),
        ({"pane": "%4", "tmux": "/tmp/tmux-1000/work"}, "tmux work/%4"),
        ({"pane": "%4", "tmux": "/tmp/tmux-1000/work", "pane_name": "x:2.1"}, "work/x:2.1"),
        ({"pane": "%4", "tmux": "/tmp/t/default", "nvim": "/tmp/nvim.7.0"}, "nvim %4"),
        ({"nvim": "/run/user/1000/nvim.4711.0"}, "nvim 4711"),
        ({"nvim": "/tmp/notes.sock"}, "nvim notes"),
    ],
)
def test_a_place_says_which_neovim_and_which_server(known: Published, expected: str) -> None:
    assert words.place(published(**known)) == expected


@pytest.mark.parametrize("status", ["error", "completed", "working", "background", "idle"])
def test_what_it_does_is_said_once(status: str) -> None:
    said = published(status=status, detail=status, last_message=status)
    assert words.doing(said) in ((status, ""), ("shell", "background"))


def test_piped_tables_are_not_cut() -> None:
    """grep must find its text."""
    detail = " ".join(["word"] * 300)
    assert detail in lines_of([published(detail=detail)], terminal.ENDLESS)[0]


@examples(300)
@given(
    st.text(
        st.characters() | st.sampled_from("\x1b\x07\x9b\x9d[]0;m%#`$\u202e\n\r\ud800"), max_size=40
    ),
    st.sampled_from(
        (
            "detail",
            "title",
            "project",
            "branch",
            "repository",
            "label",
            "tool",
            "kind",
            "pane",
            "tty",
        )
    ),
    st.sampled_from(("blocked", "working", "completed", "background", "error", "idle")),
    st.sampled_from((60, 200)),
)
def test_hostile_text_stays_text(hostile: str, field: str, status: str, columns: int) -> None:
    sessions = [published(status=status, **{field: hostile})]
    shown = [*lines_of(sessions, columns), words.status_text(sessions, NOW)]
    for line in shown:
        assert ACTIVE.search(line) is None
        assert line.encode().decode() == line
        assert text.width(line) <= columns


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;aGk=\x9cclip", "clip"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b]0;never ended", "0;never ended"),
        ("a\x1b(0b", "ab"),
        ("\x1bc", ""),
        ("over\rwritten\x08", "over written"),
        ("right\u202eleft", "right left"),
        ("[bold red]not markup[/]", "[bold red]not markup[/]"),
        (":smile: %{x} #{y} $(z)", ":smile: %{x} #{y} $(z)"),
        ("half \ud800", "half ?"),
        (None, ""),
    ],
)
def test_escape_sequences_are_removed_and_the_rest_stays(text: str, shown: str) -> None:
    assert words.plain(text) == shown


def test_a_row_names_its_agent_where_there_are_several_kinds() -> None:
    mine, other = published(agent="claude"), published(agent="codex")
    assert not any("claude" in line for line in lines_of([mine, mine], 120))
    first, second = lines_of([mine, other], 120)
    assert "claude" in first
    assert "codex" in second


def test_markup_in_text_stays_text() -> None:
    (line,) = terminal.table([published(detail="[blink]x[/blink]")], NOW, 80)
    assert "[blink]x[/blink]" in line.plain
    assert {str(span.style) for span in line.spans} <= {"bold red", "bold", "dim"}


def test_color_only_shows_urgency() -> None:
    """Icons alone are colored; the repository is bold, and the rest plain or dim."""
    for p in everybody():
        line = terminal.table([p], NOW, 200)[0]
        colored = [s for s in line.spans if str(s.style) not in ("dim", "bold")]
        assert [line.plain[s.start : s.end].rstrip() for s in colored] in ([words.icon(p)], [])


def test_a_row_says_what_else_is_known() -> None:
    """A row shows that a session is muted, for how long, and how reliable its status is."""
    muted = published(snoozed_until=NOW + 541, markers=["parked", "unseen", "inferred"])
    assert "snoozed 9m parked inferred" in lines_of([muted], 100)[0]
    assert "snoozed" not in lines_of([published(snoozed_until=NOW - 1)], 100)[0]


def test_subagents_are_on_the_line_below() -> None:
    crew = published(agents=[{"id": "x"}, {"id": "y"}], team=["t"], background=[{"id": "b"}])
    below = lines_of([crew], 60)[1]
    assert below == "   ▸ 2 agents, 1 teammate, 1 background task"


def test_a_session_without_an_address_names_its_program() -> None:
    """A jump cannot go there, so its row says where to look."""
    tty = {"tty": "/dev/pts/7"}
    places = {
        "pts/7": tty,
        "WezTerm pts/7": {**tty, "terminal_program": "WezTerm"},
        "iTerm pid 9": {"pid": 9, "terminal_program": "iTerm.app"},
        "ssh pts/7": {**tty, "ssh": "10.0.0.2 1 10.0.0.1 22"},
        "job": {"pid": 9, "job": True, "terminal_program": "WezTerm"},
        "": {},
    }
    assert list(places) == [words.place(published(**known)) for known in places.values()]


# ---------------------------------------------------------------- the status line


@pytest.mark.parametrize(
    ("sessions", "text"),
    [
        ([], ""),
        ([("idle", {})], ".1"),
        ([("working", {})] * 3, "*3"),
        ([("working", {}), ("idle", {})], "*1"),
        ([("blocked", {"detail": "rm -rf build"})], "!1 api: rm -rf build 2m"),
        ([("blocked", {"detail": "rm -rf build"}), ("idle", {})], "!1 api: rm -rf build 2m"),
        (
            [("blocked", {"detail": "rm -rf build"}), *[("completed", {})] * 2, ("background", {})],
            "!1 api: rm -rf build 2m  +2 &1",
        ),
        ([("blocked", {"kind": "question", "detail": "Which?"})], "?1 api: Which? 2m"),
        ([("blocked", {"since": NOW - 250}), ("blocked", {}), ("working", {})], "!2 4m  *1"),
        ([("blocked", {"since": NOW - 20, "detail": "ls -l x"})], "!1 api: ls -l x"),
        ([("blocked", {"hidden": True}), ("working", {})], "*1"),
        ([("error", {}), ("completed", {}), ("unknown", {})], "x1 +1 ~1"),
        ([("blocked", {"markers": ["parked"]}), ("idle", {})], ".1 (1 parked)"),
        ([("blocked", {"markers": ["parked"]}), ("blocked", {})], "!1 api: blocked 2m  (1 parked)"),
    ],
)
def test_the_status_line_says_who_needs_you(
    sessions: list[tuple[str, Published]], text: str
) -> None:
    told = [published(**({"status": status} | more)) for status, more in sessions]
    assert words.status_text(told, NOW) == text


def test_the_icons_are_those_that_the_user_chose() -> None:
    """In columns of any width; an invalid icon is replaced by the default."""
    icons = words.icons_of({"blocked": "▲", "working": "文", "error": 7, "idle": "\x1b[31m"})
    sessions = [published(), published(status="working"), published(status="idle")]
    shown = [line.plain.split("api")[0] for line in terminal.table(sessions, NOW, 60, icons)]
    assert shown == [" ▲  ", " 文 ", " .  "]
    assert words.status_text(sessions, NOW, icons=icons) == "▲1 api: blocked 2m  文1"
    assert words.icons_of(None) == words.icons_of({"blocked": ""}) == words.ICONS
    assert words.icons_of({"error": "long"})["error"] == "l…"


def test_the_status_line_keeps_to_its_width() -> None:
    told = [published(detail="d" * 300, project="p" * 50), published(status="working")]
    assert words.status_text(told, NOW, 40) == "!1 " + "p" * 15 + "…: " + "d" * 11 + "… 2m  *1"
    assert text.width(words.status_text(told, NOW, 40)) == 40
    assert text.width(words.status_text(told, NOW)) == words.ROOM
    assert words.status_text(told, NOW, 5) == "!1 2m  *1"


# ---------------------------------------------------------------- ages


@pytest.mark.parametrize(
    ("seconds", "word"),
    [(-5, "now"), (9.9, "now"), (10, "10s"), (59, "50s"), (60, "1m"), (3599, "59m"), (7300, "2h")],
)
def test_an_age_is_one_short_word(seconds: float, word: str) -> None:
    assert words.age(NOW - seconds, NOW) == word


@given(st.floats(0, 1e6))
def test_an_age_changes_exactly_when_predicted(seconds: float) -> None:
    now = NOW + seconds
    change = words.age_changes(NOW, now)
    assert change > now
    assert words.age(NOW, change + 0.001) != words.age(NOW, now)
    assert words.age(NOW, max(now, change - 0.01)) == words.age(NOW, now)


# ---------------------------------------------------------------- event logs


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def logged(t: float, name: str, why: str, *step: str | None, **facts: Any) -> Logged:
    before, after = step or (None, None)
    event = Event("tool", name, NOW + t, NOW + t, "s", **facts)
    return Logged(0, "", event, "s", "rule", facts.get("key", 1) != 9, why, before, after)


STORY = [
    logged(0, "UserPromptSubmit", "A prompt begins a turn.", "idle", "working"),
    logged(3, "PermissionRequest", "permission", "working", "blocked", tool="Bash", detail="rm x"),
    logged(4, "Notification", "already shown", key=9),
    logged(5, "PreToolUse", "News of the turn."),
    logged(6, "PreToolUse", "News of the turn."),
    logged(90000, "registry gone", "its process is gone", "working", None),
]


@pytest.mark.usefixtures("utc")
def test_explain_says_when_what_and_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    history.show_story(STORY)
    assert capsys.readouterr().out == (
        " Friday, 15 January 2027\n"
        " 08:00:00  UserPromptSubmit   idle → working          A prompt begins a turn.\n"
        " 08:00:03  PermissionRequest  working → blocked       permission (Bash: rm x)\n"
        " 08:00:04  Notification       refused                 already shown\n"
        " 08:00:05  PreToolUse ×2                              News of the turn.\n"
        " Saturday, 16 January 2027\n"
        " 09:00:00  registry gone      working → gone          its process is gone\n"
    )


@pytest.mark.usefixtures("utc")
def test_explain_wraps_on_narrow_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    told = Transition(NOW, "s", "idle", "working", "r", "Because of \x1b[2Jreason " + "longer " * 8)
    history.show_changes([told], {"s": "api"})
    assert capsys.readouterr().out == (
        " Friday, 15 January 2027\n"
        " 08:00:00  api  idle → working\n"
        "           Because of reason longer longer longer longer\n"
        "           longer longer longer longer\n"
    )


def test_without_a_session_the_text_for_a_first_run_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal.show_list([], NOW, first_run=" No sessions yet.\n\n 1  Start\n")
    assert capsys.readouterr().out == " No sessions yet.\n\n 1  Start\n"


def test_hidden_sessions_are_counted_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    sessions = [published(), published(hidden=True, session_id="h", project="hidden one")]
    terminal.show_list(sessions, NOW)
    shown = capsys.readouterr().out
    assert "hidden one" not in shown
    assert " 1 hidden: bellboard list --all\n" in shown
    terminal.show_list(sessions, NOW, hidden=True)
    assert "hidden one" in capsys.readouterr().out


def test_a_style_ends_with_its_part() -> None:
    line = StyledText("a", "yellow dim").append("b", "bold red").append("c")
    assert line.drawn() == "\x1b[2;33ma\x1b[0m\x1b[1;31mb\x1b[0mc"
    line.truncate(1)
    assert line.drawn() == "\x1b[2;33ma\x1b[0m"
    assert StyledText("a").append("b").drawn() == "ab"


def test_a_line_ends_with_its_terminal() -> None:
    """A wide character that only half fits is left out."""
    line = StyledText("漢字 and more")
    line.truncate(3, pad=True)
    assert line.plain == "漢 "


def test_a_picker_takes_alt_a_to_answer_where_that_can_be_done() -> None:
    """Else a key with Alt is none: it neither cancels nor is typed."""
    for can_answer in (True, False):
        picker = Picker([published()], can_answer=can_answer)
        picker.press("M-x")
        picker.press("M-a")
        assert (picker.over, picker.answers, picker.typed) == (can_answer, can_answer, "")
    assert picker.taken is None


@pytest.mark.parametrize("typed", ["api permission", "claude", "idle", "quiet main"])
def test_a_picker_finds_what_the_one_in_neovim_finds(typed: str) -> None:
    """Also words that are not shown: the status, the kind of a question, the agent, the markers."""
    shown = published(status="idle", kind="permission", agent="claude", branch="main")
    assert Picker([shown | {"markers": ["quiet"]}], typed=typed).matching
    assert not Picker([shown], typed="codex").matching
