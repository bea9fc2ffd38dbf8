"""What the user writes to a session: its window, what can be added, and what came of it."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors, Screens
from rig.host.sample import QUIET, TERMINAL, Host, blocked, session
from rig.waiting import eventually

CALM = {**QUIET, "float": {"enabled": False}, "answer": {"key_delay": 0}}
#: Plays the background process: keeps what it is asked, and replies when `replies` says what.
PLAYED = """
_G.asked, _G.said, _G.pending = {}, {}, {}
_G.reply = { ok = true, outcome = 'taken', text = 'it took your prompt' }
require('bellboard.process.talk').ask = function(what, request, done)
  if what == 'names' then return end
  table.insert(asked, { what, request })
  if reply then
    vim.schedule(function() done(reply) end)
  else
    table.insert(pending, done)
  end
end
vim.notify = function(text) table.insert(said, text) end
"""
TIDY: dict[str, Any] = {"project": "dotfiles", "title": "tidy the zsh prompt", "branch": "main"}
NO_NAME: dict[str, Any] = {"what": "send"}


def resting(sid: str = "dotfiles", ago: float = 300, **more: Any) -> dict[str, Any]:
    return session("completed", sid, ago=ago, **{**TIDY, **more})


def played(editor: Editor, *sessions: dict[str, Any]) -> Host:
    host = Host(editor)
    editor.lua(PLAYED)
    host.push(*(sessions or [resting(cwd=str(editor.home.project))]))
    return host


def mode(editor: Editor, wanted: str) -> None:
    eventually(lambda: editor.lua("return vim.fn.mode()") == wanted, f"mode {wanted}")


def opened(editor: Editor, command: str = "send dotfiles", rows: str = "") -> None:
    editor.command(f"{rows}ClaudeSessions {command}")
    editor.shows(" to dotfiles")
    mode(editor, "i")


def asked(editor: Editor, count: int = 1) -> list[Any]:
    eventually(lambda: len(editor.lua("return asked")) == count, f"{count} requests")
    found: list[Any] = editor.lua("return asked")
    return found


def lines(editor: Editor) -> list[str]:
    found: list[str] = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    return found


def said(editor: Editor, text: str) -> None:
    eventually(lambda: text in str(editor.lua("return said")), text)


#: What is typed, the text that is sent, and whether it is submitted.
ROWS = {
    "Normal mode": ("good; now<CR>  bash<Esc><CR>", "good; now\n  bash", True),
    "Insert mode": ("again<C-s>", "again", True),
    "not submitted": ("more<Esc>gp", "more", False),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_text_is_written_and_sent(shared: Editors, version: str, name: str) -> None:
    """The user is back as before; the next text starts empty."""
    keys, text, is_submitted = ROWS[name]
    editor = shared(version, CALM, columns=80, lines=24)
    played(editor)
    editor.press("iabc")
    mode(editor, "i")
    opened(editor)
    editor.press(keys)
    request = {"session_id": "dotfiles", "text": text, "submit": is_submitted}
    assert asked(editor) == [["send", request]]
    editor.hides(" to dotfiles")
    said(editor, "dotfiles: it took your prompt")
    mode(editor, "i")
    editor.press("d")
    editor.shows("abcd")
    assert editor.lua("return #vim.api.nvim_list_bufs()") == 1
    opened(editor)
    assert lines(editor) == [""]
    assert editor.messages().strip() == ""


def refused(shared: Editors, version: str) -> tuple[Editor, Host]:
    """Send a text of two lines that is refused."""
    editor = shared(version, CALM, columns=80, lines=24)
    host = played(editor)
    editor.lua("_G.reply = { ok = false, why = 'its prompt holds what somebody typed' }")
    opened(editor)
    editor.press("one<Esc>otwo<C-s>")
    editor.shows("Not sent: its prompt holds what somebody typed  go terminal")
    assert lines(editor) == ["one", "two"]
    return editor, host


def test_what_is_refused_is_kept(shared: Editors, version: str) -> None:
    """Also when its window is closed, or while the session asks; a change can be undone."""
    editor, host = refused(shared, version)
    editor.press("x")
    editor.shows("<CR> send")
    editor.press("q")
    editor.hides(" to dotfiles")
    said(editor, "dotfiles: your text is kept, for the next time")
    host.push(blocked("dotfiles", id="dotfiles"))
    opened(editor)
    editor.shows("! Bash")
    editor.press("<Esc>")
    assert lines(editor) == ["one", "tw"]
    editor.press("u")
    eventually(lambda: lines(editor) == ["one", "two"], "undone")
    host.push(resting("other"))
    editor.shows("The session has ended.")


@pytest.mark.parametrize(
    ("reply", "says", "left"),
    [
        (
            "{ ok = false, why = 'it asks something' }",
            "dotfiles: not sent: it asks something; your text is kept",
            ["one", "two"],
        ),
        (
            "{ ok = true, outcome = 'queued', text = 'it is in its queue' }",
            "dotfiles: it is in its queue",
            [""],
        ),
    ],
    ids=["refused", "taken"],
)
def test_a_reply_may_come_after_the_window_was_closed(
    shared: Editors, version: str, reply: str, says: str, left: list[str]
) -> None:
    """Until then the text is not sent again; then it is there again, or gone."""
    editor, _ = refused(shared, version)
    editor.lua("_G.reply = nil")
    editor.press("<CR>")
    editor.shows("Sending…")
    editor.press("q")
    editor.hides(" to dotfiles")
    editor.command("ClaudeSessions send dotfiles")
    editor.shows("Sending…")
    editor.press("<CR>q")
    editor.hides(" to dotfiles")
    assert len(asked(editor, 2)) == 2
    editor.lua(f"pending[1]({reply})")
    said(editor, says)
    opened(editor)
    assert lines(editor) == left


def test_of_a_session_that_has_ended_the_text_is_in_a_register(shared: Editors) -> None:
    """As there is no next time."""
    editor = shared(config=CALM, columns=80, lines=24)
    host = played(editor)
    opened(editor)
    editor.press("one<CR>two")
    host.push(resting("other", project="other"))
    editor.shows("The session has ended.")
    editor.press("<Esc>q")
    editor.hides(" to dotfiles")
    said(editor, "dotfiles: the session has ended; your text is in register 1")
    assert editor.lua("return vim.fn.getreg('1')") == "one\ntwo\n"
    assert editor.lua("return #vim.api.nvim_list_bufs()") == 1


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_the_window_at_any_width(shared: Editors, screen: Screens, columns: int) -> None:
    """To whom it goes, what that session does, why nothing was sent, and the keys."""
    editor = shared(config=CALM, columns=columns, lines=20)
    played(editor)
    editor.lua("_G.reply = { ok = false, why = 'its prompt holds “and then”; go there' }")
    opened(editor)
    editor.press("good; now the same for bash, and keep the old one as prompt.bak<Esc>")
    editor.shows("<CR> send")
    screen.matches(editor, f"send_{columns}")
    editor.press("<CR>")
    screen.matches(editor, f"send_refused_{columns}")


def test_our_keys_count_where_another_plugin_maps_them(nvim: Editors, version: str) -> None:
    """Some follow links with <CR> in Markdown; what is configured counts, false as well."""
    keys = {"<C-s>": False, "<C-y>": "send", "<Esc>": "close"}
    config = {**CALM, "send": {"keys": keys}}
    editor = nvim(version, config, columns=80, lines=24)
    played(editor)
    editor.lua("""
      vim.api.nvim_create_autocmd('FileType', { pattern = 'markdown', callback = function()
        vim.bo.textwidth = 20
        vim.keymap.set('n', '<CR>', '<Cmd>let g:wrong = 1<CR>', { buffer = true })
      end })
    """)
    for key in ("<Esc><CR>", "<C-y>"):
        editor.command("ClaudeSessions send dotfiles")
        editor.shows("<C-y> send")
        mode(editor, "i")
        editor.press(f"one two three four five six{key}")
        editor.hides(" to dotfiles")
    texts = [request["text"] for _, request in asked(editor, 2)]
    assert texts == ["one two three four five six"] * 2
    assert editor.lua("return vim.g.wrong") is None
    opened(editor)
    editor.press("<Esc>")
    mode(editor, "n")
    editor.press("<Esc>")
    editor.hides(" to dotfiles")


def test_what_is_closed_with_a_command_is_kept(shared: Editors, version: str) -> None:
    """It is like any other window; an empty text leaves nothing."""
    editor = shared(version, CALM, columns=80, lines=24)
    played(editor)
    for close in (":quit<CR>", ":noautocmd quit<CR>", "<C-w>c"):
        opened(editor)
        editor.press(f"a<Esc>{close}")
        editor.hides(" to dotfiles")
    opened(editor)
    assert lines(editor) == ["aaa"]
    editor.press("<Esc>ggdG:bwipeout!<CR>")
    editor.hides(" to dotfiles")
    opened(editor)
    assert lines(editor) == [""]
    editor.press("<Esc>q")
    editor.hides(" to dotfiles")
    assert editor.lua("return #vim.api.nvim_list_bufs()") == 1


def test_it_follows_the_screen_and_the_tab_page(nvim: Editors) -> None:
    """It keeps its text, where it is opened again, and fits a screen that was resized."""
    editor = nvim(config=CALM, columns=80, lines=24)
    played(editor)
    opened(editor)
    editor.command("tabnew")
    editor.hides(" to dotfiles")
    opened(editor)
    editor.press("one")
    editor.shows("│ one")
    editor.command("tabnew")
    editor.hides(" to dotfiles")
    opened(editor)
    assert lines(editor) == ["one"]
    editor.command("set columns=50 lines=12")
    eventually(lambda: editor.lua("return vim.api.nvim_win_get_width(0)") == 46, "its width")
    editor.press("<Esc>q")
    eventually(lambda: editor.lua("return #vim.api.nvim_list_wins()") == 3, "the tab pages")


def test_where_nothing_followed_a_key_goes_there(shared: Editors) -> None:
    editor = shared(config=CALM, columns=80, lines=24)
    _, tty = editor.lua(TERMINAL)
    played(editor, resting(tty=tty))
    editor.lua("_G.reply = { ok = true, outcome = 'nothing', text = 'nothing followed in 3 s' }")
    opened(editor)
    editor.shows(" · terminal ")
    editor.press("one<C-s>")
    editor.shows("Nothing followed in 3 s  go terminal")
    editor.press("go")
    eventually(lambda: editor.lua("return vim.bo.buftype") == "terminal", "its terminal")
    mode(editor, "t")
    editor.hides(" to dotfiles")
    editor.press("<C-\\><C-n>")
    opened(editor, "send")
    assert lines(editor) == ["one"]


def test_what_is_selected_goes_with_it(nvim: Editors, version: str) -> None:
    """A range as whole lines, a selection as it is; below what was written before."""
    editor = nvim(version, CALM, columns=80, lines=24)
    played(editor)
    file = editor.home.project / "src" / "a.py"
    file.parent.mkdir()
    file.write_text("def one():\n    return '```'\n\n\ndef two():\n    pass\n")
    editor.command(f"edit {file}")
    opened(editor, "send dotfiles", "1,2")
    editor.press("y<Esc>")
    region = ["src/a.py:1-2", "````python", "def one():", "    return '```'", "````"]
    eventually(lambda: lines(editor) == [*region, "y"], "the lines")
    editor.press("q")
    editor.hides(" to dotfiles")
    editor.lua("vim.keymap.set('x', 'gs', '<Plug>(bellboard-send)')")
    editor.press("5G0wvegs")
    editor.shows("│ y ")
    editor.press("<Esc>")
    word = ["src/a.py:5", "```python", "two", "```", ""]
    eventually(lambda: lines(editor) == [*region, "y", *word], "the word")
    editor.press("ggdGq")
    editor.hides(" to dotfiles")
    editor.press("5G0wve:ClaudeSessions send dotfiles<CR>")
    editor.shows(" to dotfiles")
    mode(editor, "i")
    assert lines(editor) == word


#: Functions of the user that add context.
OWN = """
vim.cmd.cd('/')
require('bellboard').setup({ send = { context = {
  who = function(here) return 'for ' .. here.session.session_id end,
  bad = function() error('oops') end,
} } })
"""
#: A change of the file, a diagnostic with a line break, and a quickfix list.
FOUND = """
local ns, buf = vim.api.nvim_create_namespace('x'), vim.fn.bufnr('a.py')
vim.fn.setbufline(buf, 1, 'two')
vim.diagnostic.set(ns, buf, {
  { lnum = 0, col = 2, message = 'bad\\nname', severity = 2, source = 'pyright' },
})
vim.fn.setqflist({ { bufnr = buf, lnum = 1, col = 2, text = ' wrong ' }, { text = 'make' } })
"""


def git(editor: Editor, *command: str) -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    root, env = editor.home.project, editor.home.env
    subprocess.run(["git", *author, *command], cwd=root, check=True, env=env)


def writing_in_git(nvim: Editors, version: str) -> Editor:
    """Write to a session from a file that is in git."""
    editor = nvim(version, CALM, columns=80, lines=24)
    played(editor)
    file = editor.home.file("a.py", "one\n")
    for command in ("init -q", "add .", "commit -qm one"):
        git(editor, *command.split())
    editor.command(f"edit {file}")
    editor.lua(OWN)
    opened(editor)
    return editor


def adds(editor: Editor, key: str, shown: str) -> None:
    """Add the context of that key: it, or why there is none, is shown."""
    editor.press("<C-g>")
    editor.shows("diff since the last commit")
    editor.press(key)
    editor.shows(shown)
    mode(editor, "i")


def test_context_is_added_where_the_cursor_is(nvim: Editors, version: str) -> None:
    """Each kind with its key; yours come after ours."""
    editor = writing_in_git(nvim, version)
    editor.lua(FOUND)
    editor.press("at  end<Esc>bhi")
    for key, text in {"1": "a.py:1", "7": "for dot", "3": "pyright", "4": "wrong"}.items():
        adds(editor, key, text)
    editor.press("<Esc>")
    assert lines(editor) == [
        "at a.py:1for dotfiles",
        "a.py:1:3: warn: bad name [pyright]",
        "a.py:1:2: wrong",
        "make",
        " end",
    ]
    assert editor.messages().strip() == ""


def test_context_that_there_is_not_is_named(nvim: Editors, version: str) -> None:
    editor = writing_in_git(nvim, version)
    for key, why in {
        "2": "Nothing was selected",
        "3": "No diagnostics in that buffer",
        "4": "The quickfix list is empty",
        "5": "No change of that file since the last commit",
        "6": "oops",
    }.items():
        adds(editor, key, why)
    assert lines(editor) == [""]


def test_a_diff_runs_nothing_of_the_repository(nvim: Editors, version: str) -> None:
    """Filters, a monitor and converters of its configuration may be hostile."""
    editor = writing_in_git(nvim, version)
    editor.home.file(".gitattributes", "* filter=bad diff=bad\n")
    for option in ("filter.bad.clean", "core.fsmonitor", "diff.bad.textconv"):
        git(editor, "config", option, "touch ran; cat")
    editor.lua(FOUND)
    adds(editor, "5", "+two")
    hunk = ["--- a/a.py", "+++ b/a.py", "@@ -1 +1 @@", "-one", "+two"]
    eventually(lambda: lines(editor) == ["```diff", *hunk, "```", ""], "the diff")
    assert not (editor.home.project / "ran").exists()


def test_lua_sends_a_text_or_opens_the_window_with_it(nvim: Editors) -> None:
    """Submitted only if told to; names of context are replaced only where the user sees it."""
    editor = nvim(config=CALM, columns=80, lines=24)
    host = played(editor)
    (editor.home.project / "b.py").write_text("x\n" * 9)
    editor.command(f"edit +7 {editor.home.project / 'b.py'}")
    send = "_G.got = nil require('bellboard').send(...)"
    editor.lua(send, "dotfiles", "run {file}")
    request = {"session_id": "dotfiles", "text": "run {file}", "submit": False}
    assert asked(editor) == [["send", request]]
    said(editor, "dotfiles: it took your prompt")
    done = "local n, t = ... require('bellboard').send(n, t, { submit = true, on_done = function(r)"
    done += " _G.got = r end })"
    editor.lua(done, "dotfiles", "run")
    assert asked(editor, 2)[1] == ["send", {**request, "text": "run", "submit": True}]
    eventually(lambda: editor.lua("return got and got.ok"), "a reply")
    editor.lua(done, "nobody", "run")
    assert 'no session "nobody"' in editor.lua("return got.why")
    editor.lua(done, "dotfiles", " ")
    assert editor.lua("return got") == {"ok": False, "why": "there is no text"}
    editor.lua("require('bellboard').send('dotfiles', 'fix {file}:{line} {odd}', { edit = true })")
    editor.shows("fix b.py:7 {odd}")
    editor.lua("require('bellboard').send('dotfiles', 'and {quickfix}', { edit = true })")
    said(editor, "{quickfix}: the quickfix list is empty")
    assert lines(editor) == ["fix b.py:7 {odd}", "and {quickfix}"]
    host.stops()
    editor.press("<C-s>")
    editor.shows("Not sent: the background process is not running")


def rested(shared: Editors) -> tuple[Editor, Host]:
    """Two sessions that rest, one that works, one that asks."""
    editor = shared(config=CALM, columns=80, lines=24)
    host = played(
        editor,
        blocked("api"),
        session("working", "web", ago=10, project="web", pid=4711),
        resting("old", ago=900, project="old", title="an old one"),
        resting("new", ago=60, project="new", title="a new one"),
    )
    return editor, host


def test_without_a_name_you_choose_among_those_that_rest(shared: Editors) -> None:
    """The one that has completed last comes first; the board keeps its own filter."""
    editor, _ = rested(shared)
    editor.press(":ClaudeSessions send<CR>")
    editor.shows("!status:working !status:blocked")
    picture = editor.hides("web")
    assert picture.text.index("a new one") < picture.text.index("an old one")
    editor.press("<CR>")
    editor.shows(" to new")
    mode(editor, "i")
    editor.press("<Esc>q")
    editor.hides(" to new")
    editor.command("ClaudeSessions board")
    editor.shows("4 sessions")
    picture = editor.shows("an old one")
    assert "! api" in picture.text and "!status" not in picture.text


def test_a_picker_of_another_plugin_offers_the_same(nvim: Editors) -> None:
    editor, _ = rested(nvim)
    editor.lua("""
      vim.ui.select = function(items, _, done) _G.offered = items done(items[2]) end
    """)
    editor.command("ClaudeSessions send")
    editor.shows(" to old")
    mode(editor, "i")
    assert [each["session_id"] for each in editor.lua("return offered")] == ["new", "old"]


def test_from_the_board_it_goes_to_the_session_under_the_cursor(shared: Editors) -> None:
    """By its key, and by the command."""
    editor, _ = rested(shared)
    editor.command("ClaudeSessions board")
    editor.shows("an old one")
    editor.press("/an old<CR>")
    for keys in ("r", ":ClaudeSessions send<CR>"):
        editor.press(keys)
        editor.shows(" to old")
        mode(editor, "i")
        editor.press("<Esc>q")
        editor.hides(" to old")
    assert editor.lua("return vim.bo.filetype") == "bellboard"


WEB: dict[str, Any] = {"project": "web", "title": "build", "pid": 4711}


@pytest.mark.parametrize(
    ("opens", "asks", "request_"),
    [
        (":ClaudeSessions interrupt web<CR>", 'Interrupt web "build"?', "interrupt"),
        (":ClaudeSessions stop web<CR>", 'Stop process 4711 (web "build")?', "stop"),
        (":ClaudeSessions board<CR>/build<CR>I", 'Interrupt web "build"?', "interrupt"),
    ],
    ids=["interrupt", "stop", "board"],
)
def test_interrupt_and_stop_ask_first(
    shared: Editors, version: str, opens: str, asks: str, request_: str
) -> None:
    """One key says no, another yes; a refusal is reported."""
    editor = shared(version, CALM, columns=80, lines=24)
    played(editor, session("working", "web", ago=10, **WEB))
    editor.lua("_G.reply = { ok = false, why = 'it asks something' }")
    editor.press(opens)
    editor.shows(asks)
    editor.press("1")
    editor.hides(asks)
    assert editor.lua("return asked") == []
    editor.press(opens)
    editor.shows(asks)
    editor.press("2")
    about = {"session_id": "web", **({"pid": 4711} if request_ == "stop" else {})}
    assert asked(editor) == [[request_, about]]
    done = {"stop": "stopped", "interrupt": "interrupted"}[request_]
    said(editor, f"web: not {done}: it asks something")


def test_only_a_session_at_work_is_interrupted(shared: Editors, version: str) -> None:
    """The outcome is reported; the background process has a command of its own."""
    editor = shared(version, CALM, columns=80, lines=24)
    played(editor, resting("api", project="api"), session("working", "web", ago=10, **WEB))
    editor.lua("_G.reply = { ok = true, outcome = 'taken', text = 'it has stopped its turn' }")
    editor.command("ClaudeSessions interrupt web")
    editor.shows("2  Interrupt it")
    editor.press("2")
    said(editor, "web: it has stopped its turn")
    editor.command("ClaudeSessions interrupt api")
    said(editor, "not working")
    editor.command("ClaudeSessions start")
    said(editor, "process start is the background process")
