"""The Program Status Protocol: what counts as a report, and what a terminal keeps of them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import asdict

from bellboard.core.program_status import (
    MOST_BYTES,
    MOST_RECORDS,
    Discarded,
    Record,
    Report,
    app_of,
    at_prompt,
    parsed,
    taken,
)
from rig import DATA

SPOKEN = DATA / "reports" / "2.1.332.txt"
LONGEST_BODY = MOST_BYTES - len("\x1b]7501;\x07")


def encoded(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return base64.b64encode(raw).decode()


def filled(length: int) -> str:
    """A body of this length: a key that nobody knows makes it long."""
    return "state=done:x=".ljust(length, "x")


OK = Report("working")


@pytest.mark.parametrize(
    ("body", "report"),
    [
        ("state=working", OK),
        ("state=idle:app=x.y_z+1-2", Report("idle", app="x.y_z+1-2")),
        ("id=a/b:state=error", Report("error", "a/b")),
        (f"state=done:title={encoded('two words')}", Report("done", title="two words")),
        (f"state=done:msg={encoded('Käse ✓ 😀')}", Report("done", msg="Käse ✓ 😀")),
        # What is no pair, or no value, is skipped; keys that are unknown are ignored.
        ("state=working:::nothing:=x:Kind=x:k1=x:é=x", OK),
        ("state=working:later=1:color=red", OK),
        (" state\t=  working :\tapp = x ", Report("working", app="x")),
        ("state=working:state=do;ne", OK),
        ("state=working:msg=a b", OK),
        ("state=working:app=a;b", OK),
        ("state=working:thiskeyhasnovalue", OK),
        ("state=working:" + "k" * 16 + "=x", OK),
        ("state=working:" + "K" * 17 + "=x", OK),
        # The last value of a key counts, also one that means nothing.
        ("state=idle:state=working", OK),
        ("state=working:app=x:app=y", Report("working", app="y")),
        ("state=working:progress=40:progress=101", OK),
        (f"state=working:msg={encoded('x')}:msg=", OK),
        # A value without meaning is as good as none.
        ("state=working:kind=permission", OK),
        ("state=blocked:kind=lunch", Report("blocked")),
        ("state=blocked:kind=auth", Report("blocked", kind="auth")),
        ("state=working:app=", OK),
        ("state=working:app=a/b", OK),
        ("state=working:app=" + "a" * 32, Report("working", app="a" * 32)),
        ("state=working:progress=0", Report("working", progress=0)),
        ("state=blocked:progress=100", Report("blocked", progress=100)),
        ("state=done:progress=50", Report("done")),
        ("state=working:progress=", OK),
        ("state=working:progress=101", OK),
        ("state=working:progress=-1", OK),
        ("state=working:progress=+5", OK),
        ("state=working:progress=4.5", OK),
        ("state=working:progress=" + "9" * 999, OK),
        # Base64 with its padding, or without.
        ("state=working:msg=QQ==", Report("working", msg="A")),
        ("state=working:msg=QQ", Report("working", msg="A")),
        ("state=working:msg=QUE", Report("working", msg="AA")),
        ("state=working:title=", OK),
        # What is only invisible is left for whoever shows it.
        (
            f"state=working:msg={encoded('a' + chr(0x202E) + 'b')}",
            Report("working", msg="a\u202eb"),
        ),
        # Ids and limits, to the last byte.
        ("state=idle:id=" + "/".join("abcdefgh"), Report("idle", "a/b/c/d/e/f/g/h")),
        ("state=idle:id=" + "a" * 32, Report("idle", "a" * 32)),
        (
            "state=idle:id=" + "/".join(["a" * 31] * 4),
            Report("idle", "/".join(["a" * 31] * 4)),
        ),
        (f"state=done:title={encoded('x' * 192)}", Report("done", title="x" * 192)),
        (f"state=done:msg={encoded('x' * 2048)}", Report("done", msg="x" * 2048)),
        (filled(LONGEST_BODY), Report("done")),
        # Of the end of a record, only its name is of interest.
        ("state=clear", Report("clear")),
        ("state=clear:id=a:app=x:progress=3:msg=QQ==", Report("clear", "a")),
    ],
)
def test_reports_are_read_as_the_protocol_says(body: str, report: Report) -> None:
    assert report == parsed(body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "it has no state"),
        ("app=x", "it has no state"),
        ("state", "it has no state"),
        ("state=", "it has no state"),
        ("state=wor king", "it has no state"),
        ("STATE=working", "it has no state"),
        ("state=flying", "its state is unknown"),
        ("state=Working", "its state is unknown"),
        ("state=working:state=flying", "its state is unknown"),
        ("?", "it is a query"),
        ("?state=working", "it is a query"),
        # An id that is none never names the root.
        ("state=clear:id=", "id is no path of names"),
        ("state=clear:id=bad!", "id is no path of names"),
        ("state=clear:id=bad!:id=good", "id is no path of names"),
        ("state=idle:id=a//b", "id is no path of names"),
        ("state=idle:id=/a", "id is no path of names"),
        ("state=idle:id=a/", "id is no path of names"),
        ("state=idle:id=a,b", "id is no path of names"),
        ("state=idle:id=a\n", "id is no path of names"),
        ("state=idle:id=" + "/".join("abcdefghi"), "id is no path of names"),
        ("state=idle:id=" + "a" * 33, "id is no path of names"),
        ("state=idle:id=" + "/".join(["a" * 32] * 4), "id is too long"),
        # A broken limit counts, also in a pair that would be skipped or repeated.
        ("state=idle:app=" + "a" * 33, "app is too long"),
        ("state=idle:app=" + "!" * 33, "app is too long"),
        ("state=idle:app=" + "a" * 33 + ":app=x", "app is too long"),
        ("state=idle:" + "k" * 17 + "=x", "a key is too long"),
        (f"state=idle:title={encoded('x' * 193)}", "title is too long"),
        ("state=idle:title=" + "A" * 257, "title is too long"),
        (f"state=idle:msg={encoded('x' * 2049)}", "msg is too long"),
        ("state=idle:msg=" + "A" * 2732, "msg is too long"),  # 2,049 bytes
        ("state=idle:msg=" + "A" * 2733, "msg is too long"),
        (filled(LONGEST_BODY + 1), "the sequence is too long"),
        ("state=idle:" + "é" * 2048, "the sequence is too long"),
        # Text that is not text.
        ("state=idle:msg=Q", "msg is not base64"),
        ("state=idle:msg=QUEQQ", "msg is not base64"),
        ("state=idle:msg=QQ=", "msg is not base64"),
        ("state=idle:msg=QQ===", "msg is not base64"),
        ("state=idle:msg==QQ=", "msg is not base64"),
        ("state=idle:msg=QQ==QQ==", "msg is not base64"),
        ("state=idle:msg=QR==", "msg is not base64"),  # bits that mean nothing
        ("state=idle:msg=a,b", "msg is not base64"),
        ("state=idle:msg=_-8=", "msg is not base64"),
        ("state=idle:msg=a:msg=QQ==", "msg is not base64"),
        ("state=clear:msg=a", "msg is not base64"),
        (f"state=idle:title={encoded(bytes([0xFF, 0xFE]))}", "title is not UTF-8"),
        (f"state=idle:msg={encoded(bytes([0xC0, 0xAF]))}", "msg is not UTF-8"),
        (f"state=idle:msg={encoded(bytes([0xED, 0xA0, 0x80]))}", "msg is not UTF-8"),
        *(
            (f"state=idle:msg={encoded(f'a{chr(code)}b')}", "msg has control characters")
            for code in (*range(0x20), *range(0x7F, 0xA0))
        ),
    ],
)
def test_what_breaks_a_rule_is_discarded_whole(body: str, why: str) -> None:
    with pytest.raises(Discarded) as found:
        parsed(body)
    assert why == str(found.value)


@pytest.mark.parametrize("body", SPOKEN.read_text().splitlines())
def test_reports_of_the_real_cli_are_read_whole(body: str) -> None:
    pairs = dict(pair.split("=", 1) for pair in body.split(":"))
    for key in pairs.keys() & {"title", "msg"}:
        pairs[key] = base64.b64decode(pairs[key]).decode()
    assert Report(**pairs) == parsed(body)


# Whatever is sent.

names = st.text("abcXYZ019_.+-", min_size=1, max_size=32)
ids = st.lists(names, min_size=1, max_size=8).map("/".join).filter(lambda id: len(id) <= 128)
texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=48)
reports = st.one_of(
    st.builds(Report, st.just("clear"), st.just("") | ids),
    st.builds(
        Report,
        state=st.sampled_from(["idle", "working", "done", "blocked", "error"]),
        id=st.just("") | ids,
        app=st.just("") | names,
        title=texts,
        msg=texts,
    ),
    st.builds(
        Report,
        state=st.just("blocked"),
        kind=st.sampled_from(["permission", "question", "auth"]),
        progress=st.integers(0, 100),
    ),
)
pieces = st.sampled_from(
    [
        *("state=", "working", "clear", "id=", "app=", "msg=", "title=", "kind=", "progress="),
        *(":", "=", "/", "a", "a/b", "QQ==", "QR==", "40", " ", "\t", "\x1b", "\x07", "\x9c"),
        *("\u202e", "\ud800", "é", "?", "x" * 33, "A" * 257, "A" * 2732, "A" * MOST_BYTES),
    ]
)


def pairs_of(report: Report) -> list[str]:
    percent = str(report.progress) if report.progress >= 0 else ""
    values = {
        **asdict(report),
        "progress": percent,
        "title": encoded(report.title),
        "msg": encoded(report.msg),
    }
    return [f"{key}={value}" for key, value in values.items() if value]


@given(st.text() | st.lists(pieces).map("".join))
@example("state=working:msg=\ud800")
def test_any_text_is_a_report_or_discarded(body: str) -> None:
    try:
        report = parsed(body)
    except Discarded as why:
        assert str(why).isascii()
        return
    assert report == parsed(":".join(pairs_of(report)))


@given(reports, st.data())
def test_a_report_in_any_order_and_with_junk_is_the_same(
    report: Report, data: st.DataObject
) -> None:
    junk = data.draw(st.lists(st.sampled_from(["", "x", "=", "new=1", "app=;", "A=b", "msg= !"])))
    body = ":".join(data.draw(st.permutations([*pairs_of(report), *junk])))
    assert report == parsed(body)


@given(reports, st.data())
def test_a_report_that_was_cut_adds_nothing(report: Report, data: st.DataObject) -> None:
    """A cut report is discarded, or says less; no text, name or part is new."""
    body = ":".join(pairs_of(report))
    cut = body[: data.draw(st.integers(0, len(body)))]
    try:
        left = parsed(cut)
    except Discarded:
        return
    assert report.title.startswith(left.title)
    assert report.msg.startswith(left.msg)
    assert report.app.startswith(left.app)
    assert report.id.startswith(left.id)


# What a terminal keeps.


def told(*bodies: str) -> dict[str, Record]:
    records: dict[str, Record] = {}
    for t, body in enumerate(bodies):
        records = taken(records, parsed(body), float(t))
    return records


def test_a_report_replaces_its_record_whole() -> None:
    records = told("state=working:app=make:progress=20:msg=QQ", "state=working:progress=30")
    assert {"": Record("working", 0.0, progress=30)} == records


def test_a_state_begins_when_another_ends() -> None:
    records = told(*(f"state={s}" for s in ("working", "blocked", "blocked", "working")))
    assert {"": Record("working", 3.0)} == records


def test_the_end_of_a_record_ends_what_is_below() -> None:
    below = [f"state=working:id={id}" for id in ("a", "a/b", "a/b/c", "ab", "b/a", "a.b")]
    assert ["", "a", "ab", "b/a", "a.b"] == list(told("state=idle", *below, "state=clear:id=a/b"))
    assert ["", "ab", "b/a", "a.b"] == list(told("state=idle", *below, "state=clear:id=a"))
    assert {} == told("state=idle", *below, "state=clear")
    assert {} == told("state=clear")


def test_at_the_next_prompt_only_results_are_left() -> None:
    states = ("idle", "working", "blocked", "done", "error")
    records = told(*(f"state={state}:id={state}" for state in states))
    assert ["done", "error"] == list(at_prompt(records))


def test_a_record_has_the_program_of_its_nearest_ancestor() -> None:
    records = told("state=idle:app=shell", "state=done:id=a:app=make", "state=done:id=a/b/c")
    of = {id: app_of(records, id) for id in ("", "a", "a/b", "a/b/c", "ab", "b/a")}
    shell, make = "shell", "make"
    assert {"": shell, "a": make, "a/b": make, "a/b/c": make, "ab": shell, "b/a": shell} == of
    assert "" == app_of({}, "a/b")


few = st.sampled_from(["", "a", "a/b", "b", *(f"n{n}" for n in range(300))])
storms = st.lists(
    st.builds(Report, st.sampled_from(["idle", "working", "done"]), few)
    | st.builds(Report, st.just("clear"), st.sampled_from(["a", "b", "n1"])),
    max_size=40,
)


@given(storms, st.integers(0, 300))
def test_the_least_recently_updated_record_goes_first(storm: list[Report], many: int) -> None:
    """The model is a list of ids, and each report moves its id to the end."""
    said = [*(Report("done", f"n{n}") for n in range(many)), *storm]
    records: dict[str, Record] = {}
    model: list[str] = []
    for t, report in enumerate(said):
        before = dict(records)
        after = taken(records, report, float(t))
        assert before == records  # which somebody else may still read
        records = after
        if report.state == "clear":
            gone = (report.id, report.id + "/")
            model = [id for id in model if id != gone[0] and not id.startswith(gone[1])]
        else:
            model = [*(id for id in model if id != report.id), report.id][-MOST_RECORDS:]
        assert model == list(records)
