"""The rules that the table in `machine.py` names, by topic.

A rule changes the record of a session in place and returns None, or changes nothing relevant and
returns why it refused.  Its docstring is the reason that `bellboard explain` prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..events import Event
from ..options import Options
from ..session import Session
from . import crew, ends, far, files, life, own_report, people, questions, screen, turn

Rule = Callable[[Session, Event, Options], "str | None"]

RULES: Final[dict[str, Rule]] = {
    rule.__name__: rule
    for rule in (
        life.begin,
        life.reopen,
        life.leave,
        life.depart,
        life.lose_pane,
        turn.work,
        turn.wake,
        turn.go_on,
        ends.finish,
        ends.sent_on,
        ends.amend,
        ends.catch_up,
        ends.recount,
        ends.fail,
        ends.explain,
        ends.fail_late,
        ends.esc_late,
        ends.reject,
        ends.excuse,
        ends.break_off,
        ends.missed,
        ends.release,
        turn.compact,
        turn.compacted,
        turn.listen,
        turn.fade,
        questions.ask,
        questions.assign,
        questions.offer,
        questions.choose,
        questions.remind,
        questions.recall,
        questions.confirm,
        questions.show,
        questions.move_on,
        questions.grant,
        questions.answered,
        questions.withdraw,
        questions.name_tool,
        questions.suspect,
        crew.enlist,
        crew.use_tool,
        crew.dismiss,
        crew.give_up,
        crew.count,
        crew.retire,
        crew.disband,
        files.go_busy,
        files.settle,
        files.dequeue,
        files.hear,
        files.hear_end,
        files.attempt,
        files.retry,
        screen.seen_busy,
        screen.seen_idle,
        screen.seen_asks,
        own_report.state,
        people.look,
        people.clear,
        people.correct,
        people.mark,
        people.reply,
        people.outcome,
        people.learn,
        people.doubt,
        far.follow,
        far.rejoin,
        far.lose,
        far.fold_away,
    )
}
