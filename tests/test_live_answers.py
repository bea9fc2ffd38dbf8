"""What is answered and what is sent is what the real CLI takes: the model's next request has it.

One session and a few of each; `make live ONLY=answers` and `ONLY="answers sending"` do them all.
"""

from __future__ import annotations

import pytest

from live.answers.giving import CASES, give
from live.answers.place import place
from live.answers.sending import works
from rig import claude_code

pytestmark = [pytest.mark.live, pytest.mark.tmux, pytest.mark.timeout(300)]

SOME = (
    *("permission: stop", "permission: edit", "permission: allow"),
    *("make: always", "touch: edits", "questions: choose"),
)


def wrong(*names: str) -> dict[str, str]:
    cases = [case for case in CASES if case.name in names]
    assert len(cases) == len(names)
    return {case.name: why for case, why in give(claude_code.VERSION, cases) if why}


@pytest.mark.smoke
def test_the_model_gets_why_it_may_not() -> None:
    assert wrong("permission: deny with a message") == {}


def test_the_model_gets_what_was_answered() -> None:
    """Each choice has its own effect, and none is asked for twice."""
    assert wrong(*SOME) == {}


def test_a_prompt_is_queued_while_it_works_and_esc_interrupts() -> None:
    with place() as made:
        told = dict(works(made))
    assert told == dict.fromkeys(told, "")
    assert {"queued", "interrupted"} <= told.keys()
