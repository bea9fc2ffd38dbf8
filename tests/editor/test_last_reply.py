"""The whole reply of a session that rests: opened like a request, with what it changed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors, Screens
from rig.host.asked import CALM, SAID, asks, command, play, pressed, said
from rig.host.sample import Host, session
from rig.waiting import eventually

#: Plays the background process: has the last turns, and one diff.
PLAYED = """
_G.turns, _G.asked, _G.told = ..., {}, {}
local talk = require('bellboard.process.talk')
talk.tell = function(evidence) table.insert(told, evidence) end
talk.ask = function(what, request, done)
  table.insert(asked, { what, request })
  vim.schedule(function()
    local turn = turns[request.session_id]
    if what == 'turn' then
      done(turn and { ok = true, turn = turn } or { ok = false, why = 'it has said nothing yet' })
    elseif what == 'preview' then
      done({ ok = false, why = 'nothing shows it' })
    elseif request.path:find('aside') then
      done({ ok = false, why = 'not in a git repository' })
    else
      done({ ok = true, diff = '# against HEAD\\n--- a/x\\n+++ b/x\\n@@ -1 +1 @@\\n-1\\n+2\\n' })
    end
  end)
end
"""
REPLY = """\
# The prompt is one line now

It starts in **12 ms**, as `prompt.zsh` loads nothing before the first key is typed; what was slow:

- `compinit` ran twice, because the plugin manager and your own file both called it at the start
- 214 rules that nothing uses

```zsh
setopt prompt_subst
PROMPT='%~ %# '
```

1. Next, the same for bash?
"""
FILES = (
    {"path": "zshrc", "whole": "/w/zshrc", "how": "changed", "words": "+12 -40"},
    {"path": "lib/prompt.zsh", "whole": "/w/lib/prompt.zsh", "how": "created", "words": "new +31"},
    {
        "path": "/tmp/aside",
        "whole": "/tmp/aside",
        "how": "created",
        "words": "new +1 · not in a git repository",
    },
    {
        "path": "old/theme.zsh",
        "whole": "/w/old/theme.zsh",
        "words": "renamed from theme.zsh",
        "unclaimed": True,
    },
)


def turn(**more: Any) -> dict[str, Any]:
    about = {
        "about": "main · 4m 10s · 38k tokens",
        "prompt": "tidy the zsh prompt\nand keep it short",
    }
    return {"text": REPLY, "since": 0, "files": [*FILES], **about, **more}


def resting(name: str, **more: Any) -> dict[str, Any]:
    return session("completed", name, project=name, title="tidy the zsh prompt", **more)


def opened(editor: Editor, *sessions: dict[str, Any], name: str = "dotfiles", **more: Any) -> Host:
    """Open the reply of a session; the others are there, too."""
    host = Host(editor)
    editor.lua(SAID)
    listed = [*(sessions or (resting(name),))]
    editor.lua(PLAYED, {each["session_id"]: turn(**more) for each in listed})
    host.push(*listed)
    editor.command(f"ClaudeSessions answer {name}")
    editor.shows("The prompt is one line now")
    return host


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_a_reply_at_any_width(shared: Editors, screen: Screens, columns: int) -> None:
    """The title, what it was about, the prompt, the Markdown, the files."""
    editor = shared(config=CALM, columns=columns, lines=36)
    opened(editor)
    screen.matches(editor, f"reply_{columns}")


def diff_shown(editor: Editor) -> None:
    eventually(lambda: editor.lua("return vim.bo.filetype") == "diff", "a diff")
    assert "+2" in editor.lua("return vim.fn.getline(1, '$')")
    editor.command("$tabnew | tabprevious")
    editor.press("q")
    editor.shows("dotfiles: completed")
    editor.command("tabonly")


def test_its_files_are_compared(shared: Editors, version: str) -> None:
    """The one under the cursor, in a tab page; or it says why not."""
    editor = shared(version, CALM, columns=70, lines=40)
    opened(editor)
    editor.press("gd")
    editor.shows("Put the cursor on a file, then press the key again.")
    editor.press("gd")
    diff_shown(editor)
    editor.press("jj<CR>")
    editor.shows("No diff of /tmp/aside: not in a git repository.")
    paths = [given["path"] for what, given in editor.lua("return asked") if what == "diff"]
    assert paths == ["/w/zshrc", "/tmp/aside"]
    editor.press("jjjgd")
    diff_shown(editor)
    editor.press("q")
    editor.hides("dotfiles: completed")
    opened(editor, files=[FILES[0]])
    editor.press("gd")
    diff_shown(editor)


@pytest.mark.parametrize(
    ("keys", "evidence"), [("d", "goto"), ("s", "snooze"), ("q", None), ("<Esc>", None)]
)
def test_it_is_left_as_a_request_is(shared: Editors, keys: str, evidence: str | None) -> None:
    """Seen, snoozed or neither; what would answer a request does nothing."""
    editor = shared(config=CALM, columns=70, lines=40)
    opened(editor)
    editor.press("APDS123iucx~")
    pressed(editor)
    editor.shows("dotfiles: completed")
    editor.press(keys)
    editor.hides("dotfiles: completed")
    told = [next(iter(each)) for each in editor.lua("return told") if "view" not in each]
    assert told == ([evidence] if evidence else [])
    assert editor.messages().strip() == ""


def test_it_says_that_the_session_went_on(shared: Editors) -> None:
    """What is read stays; so it does when the session has ended."""
    editor = shared(config=CALM, columns=70, lines=40)
    host = opened(editor)
    host.push(session("working", "dotfiles", project="dotfiles"))
    editor.shows("It has gone on since then.")
    editor.press("u")
    said(editor, "dotfiles: not asking anything; it is still working")
    editor.hides("The prompt is one line now")
    host.push(resting("none"))
    editor.command("ClaudeSessions answer none")
    said(editor, "none: it has said nothing yet")
    host = opened(editor)
    host.push()
    editor.shows("The session has ended.")


@pytest.mark.parametrize("key", ["a", "K"])
def test_the_board_opens_it(shared: Editors, key: str) -> None:
    editor = shared(config=CALM, columns=100, lines=40)
    host = Host(editor)
    editor.lua(PLAYED, {"dotfiles": turn()})
    host.push(resting("dotfiles", last_message="nothing more"))
    editor.command("ClaudeSessions board")
    editor.shows("1 session")
    editor.press("gg]]" + key)
    editor.shows("The prompt is one line now")
    editor.press("q")
    editor.lua("turns = {}")
    editor.press(key)
    nothing = "it has said nothing yet" if key == "a" else "nothing shows it"
    editor.shows(nothing)


def test_a_hostile_reply_stays_in_its_rows(shared: Editors) -> None:
    """Nothing of it acts on the screen; a huge one opens at once."""
    editor = shared(config=CALM, columns=70, lines=40)
    text = (
        "The prompt is one line now\n\x1b[2J\u202eabc\x00\ttab\n" + "x" * 30_000 + "\n```\n" * 2000
    )
    bad = {"path": "a\n\x1b[31m\u202eb" * 50, "whole": "/x", "words": "+1\n-2" * 99}
    opened(
        editor, text=text, files=[bad], prompt="p\x1b]0;x\x07" * 999, about="\x1b[1m", note="\n\x1b"
    )
    editor.press("G")
    editor.shows("…")
    assert editor.messages().strip() == ""


#: Takes what is sent.
TAKES = """
local talk = require('bellboard.process.talk')
local before = talk.ask
talk.ask = function(what, request, done)
  if what ~= 'send' then
    return before(what, request, done)
  end
  table.insert(asked, { what, request })
  vim.schedule(function() done({ ok = true, outcome = 'taken', text = 'it took the prompt' }) end)
end
"""


def wrote(editor: Editor, name: str, text: str) -> None:
    """Write to a session from its reply."""
    editor.press("r")
    editor.shows(f" to {name}")
    eventually(lambda: editor.lua("return vim.fn.mode()") == "i", "Insert mode")
    editor.press(f"{text}<C-s>")
    editor.hides(f" to {name}")


def test_what_comes_next_is_written_from_there(shared: Editors, version: str) -> None:
    """The view closes once it was sent; until then it stays, also if the session goes on."""
    editor = shared(version, CALM, columns=72, lines=40)
    opened(editor)
    editor.lua(TAKES)
    editor.shows("r write")
    editor.press("r")
    editor.shows(" to dotfiles")
    eventually(lambda: editor.lua("return vim.fn.mode()") == "i", "Insert mode")
    editor.press("x<Esc>xq")
    editor.hides(" to dotfiles")
    editor.shows("dotfiles: completed")
    wrote(editor, "dotfiles", "now bash")
    editor.hides("dotfiles: completed")
    said(editor, "dotfiles: it took the prompt")
    sent = [given for what, given in editor.lua("return asked") if what == "send"]
    assert sent == [{"session_id": "dotfiles", "text": "now bash", "submit": True}]
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
    assert editor.messages().strip() == ""


def test_in_a_triage_what_comes_next_is_written_one_after_the_other(
    shared: Editors, version: str
) -> None:
    """Each reply that was answered with a text counts as sent."""
    editor = shared(version, CALM, columns=72, lines=40)
    host = opened(editor)
    editor.lua(TAKES)
    editor.press("q")
    two = [resting("one", ago=90), resting("two", ago=60)]
    editor.lua("for n in ('one two'):gmatch('%a+') do turns[n] = turns.dotfiles end")
    host.push(*two)
    editor.command("ClaudeSessions triage all")
    editor.shows("one: completed")
    wrote(editor, "one", "go on")
    editor.shows("two: completed")
    wrote(editor, "two", "go on")
    said(editor, "triage: 2 sent")
    assert editor.messages().strip() == ""


# ---------------------------------------------------------------- triage


def played(editor: Editor, asking: list[dict[str, Any]], done: list[dict[str, Any]]) -> None:
    """Play the background process for sessions that ask, and for some that are done."""
    play(editor, *[command(each, f"make {each['session_id']}") for each in asking])
    both = "local ask = require('bellboard.process.talk').ask;" + PLAYED.replace(
        "talk.ask = function(what, request, done)",
        "talk.ask = function(what, request, done)\n"
        "  if what ~= 'turn' and what ~= 'diff' then return ask(what, request, done) end",
    )
    editor.lua(both, {each["session_id"]: turn(text=each["session_id"]) for each in done})


def test_a_triage_of_all_goes_on_with_replies(shared: Editors, version: str) -> None:
    """First those that ask; then each reply, one deliberate key each; muted ones are left out."""
    editor = shared(version, CALM, columns=72, lines=40)
    host = Host(editor)
    editor.lua(SAID)
    many = [asks(f"p{n}", ago=100 - n) for n in range(2)]
    done = [resting(f"done{n}", since=time.time() - 90 + n) for n in range(4)]
    quiet = resting("quiet", markers=["parked"])
    played(editor, many, done[:3])
    host.push(*many, *done, quiet)
    editor.command("ClaudeSessions triage all")
    editor.shows("6 left · p0")
    editor.press("A")
    editor.shows("make p1")
    host.push(many[1], *done, quiet)
    editor.press("D")
    editor.shows("4 left · done")
    host.push(*done, quiet)
    for n, key in enumerate(("d", "<Tab>", "s")):
        editor.shows(f"{4 - n} left · done{n}: completed")
        editor.press(key)
    editor.shows("It has said nothing yet.")
    editor.press("<Tab>")
    said(editor, "triage: 2 answered, 1 seen, 1 snoozed, 2 skipped")
    editor.command("ClaudeSessions triage")
    said(editor, "no session is asking anything")
    editor.command("ClaudeSessions triage some")
    said(editor, 'no "triage some"')


def test_twenty_sessions_take_one_key_each(shared: Editors) -> None:
    """Eight that ask, twelve that are done."""
    editor = shared(config=CALM, columns=72, lines=40)
    host = Host(editor)
    editor.lua(SAID)
    now = time.time()
    many = [asks(f"p{n}", ago=100 - n) for n in range(8)]
    done = [resting(f"done{n}", since=now - 90 + n) for n in range(12)]
    played(editor, many, done)
    host.push(*many, *done)
    editor.command("ClaudeSessions triage all")
    for n, each in enumerate((*many, *done)):
        name = each["session_id"]
        editor.shows(f"{20 - n} left · {name}: " if n < 19 else name)
        editor.press("A" if n < 8 else "d")
    said(editor, "triage: 8 answered, 12 seen")
    editor.hides("left · ")
    assert len(editor.lua("return answers")) == 8
    assert sum("goto" in each for each in editor.lua("return told")) == 12
