"""Read the questions and forms that Claude Code asks, as they are shown."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ....core.request import Field, Option, Question
from ....core.text import marked
from ....core.untrusted import Facts, converted, text_of
from ...parts import Offered, question

#: What the CLI knows of a field.  What others ask, such as `oneOf`, cannot be known.
KEYWORDS: Final = frozenset(
    {
        *("type", "title", "description", "default", "enum", "enumNames", "format", "pattern"),
        *("minLength", "maxLength", "minimum", "maximum"),
    }
)


class AskedQuestion(Struct):
    question: str
    header: str = ""
    options: list[Offered] = []
    multiSelect: bool = False


def questions_of(given: Facts) -> tuple[Question, ...]:
    """Return the questions of a tool's input as they are shown; none if the list is invalid."""
    asked = converted(given.get("questions"), list[AskedQuestion]) or ()
    return tuple(question(q.question, q.header, q.options, q.multiSelect) for q in asked)


def fields_of(schema: Facts) -> tuple[Field, ...] | None:
    """Return the fields of a form; None if one is of an unknown form."""
    given, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(given, dict) or not isinstance(required, list):
        return None
    made = [_field(name, facts, name in required) for name, facts in given.items()]
    return None if None in made else tuple(f for f in made if f is not None)


def _field(name: str, facts: object, required: bool) -> Field | None:
    if not isinstance(facts, dict) or not {*facts} <= KEYWORDS or marked(name) != name:
        return None
    kind, values = facts.get("type"), facts.get("enum", [])
    if kind not in ("string", "number", "integer", "boolean") or not isinstance(values, list):
        return None
    default = facts.get("default")
    is_seen = marked(default) == default if isinstance(default, str) else True
    if not (is_seen and isinstance(default, str | int | float | None)):
        return None
    titles = facts.get("enumNames", [])
    titles = titles if isinstance(titles, list) and len(titles) == len(values) else values
    if not all(isinstance(x, str) and marked(x) == x for x in (*values, *titles)):
        return None
    title, description = text_of(facts, "title"), text_of(facts, "description")
    return Field(
        name,
        marked(title or description),
        marked(description if title else ""),
        kind,
        required,
        tuple(Option(value, title) for value, title in zip(values, titles, strict=True)),
        default,
    )
