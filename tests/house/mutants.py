"""Mutants: small faults put into the program at random, to see which test catches each.

    python -m house.mutants --seed 51 --count 40 > FILE    draws them, one JSON line each
    python -m house.mutants FILE > RESULTS                 the same, and which test caught each

The same seed on the same tree draws the same mutants; each is recorded by its text, so that it can
be put into a later tree. One file of this checkout is changed at a time, and put back. The tests
whose name or imports say that they are about the file come first, layer by layer, then the others,
up to the first that fails with the mutant only. Read what survives: nobody can notice it, or a row
is missing in a table of tests.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rig import ROOT

FOLDERS: Final = {".py": ROOT / "rplugin/python3", ".lua": ROOT / "lua"}
QUICK = "core or quick or house"
LAYERS = (QUICK, f"not ({QUICK} or editor or screen or live)", "(editor or screen) and not live")

Mutant = dict[str, Any]
Change = tuple[str, int, int, str]  # kind, from where to where, and what stands there then

PAIRS: Final[tuple[tuple[Any, Any], ...]] = (
    *((ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.And, ast.Or)),
)
OTHER: Final = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}


def changes_of(node: ast.AST) -> Iterator[tuple[str, Any, str]]:
    """Yield kind, which part of the node is replaced, and by what."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right):
            yield "comparison", node, ast.unparse(ast.Compare(left, [OTHER[type(op)]()], right))
        case ast.BoolOp(op=op, values=values):
            yield "and/or", node, f"({ast.unparse(ast.BoolOp(OTHER[type(op)](), values))})"
            for left_out in values:
                rest = [value for value in values if value is not left_out]
                kept = ast.BoolOp(op, rest) if rest[1:] else rest[0]
                yield "condition dropped", node, f"({ast.unparse(kept)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negation dropped", node, f"({ast.unparse(operand)})"
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield "condition negated", test, f"(not ({ast.unparse(test)}))"
        case ast.comprehension(ifs=tests):
            yield from (("condition dropped", test, "True") for test in tests)
        case ast.Constant(value=bool(value)):
            yield "constant", node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", node, str(value + 1)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield "sum", node, f"({ast.unparse(ast.BinOp(left, ast.Add(), right))})"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return value", value, "None"
        case (
            ast.Expr(value=ast.Call() | ast.Await() | ast.Yield())
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            | (ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete())
        ):
            yield "statement removed", node, "pass"


def code_below(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run, and of which it is known where they stand."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from code_below(child)


def in_python(text: str) -> Iterator[Change]:
    """Yield what can be changed in a Python file."""
    lines = text.encode().splitlines(keepends=True)

    def place(line: int, column: int) -> int:
        return len(b"".join([*lines[: line - 1], lines[line - 1][:column]]).decode())

    for node in code_below(ast.parse(text)):
        for kind, at, after in changes_of(node):
            start, end = place(at.lineno, at.col_offset), place(at.end_lineno, at.end_col_offset)
            yield kind, start, end, after


WORDS: Final = (("==", "~="), ("<", "<="), (">", ">="), ("and", "or"), ("true", "false"))
#: Of Lua: kind, what is replaced on a line without strings and comments, and by what.
PATTERNS: Final = (
    *(("word", rf"(?<=\s){a}(?=\s)", b) for pair in WORDS for a, b in (pair, pair[::-1])),
    ("negation dropped", r"\bnot ", ""),
    ("condition negated", r"\b(if|while) (.+?) (then|do)\b", r"\1 not (\2) \3"),
    ("constant", r"(?<![\w.])(\d+)(?![\w.])", r"(\1 + 1)"),
    ("return value", r"\breturn (?!nil\b|function\b)[^{}]+?(?= end\b|$)", "return nil"),
    ("statement removed", r"(?<=^ {2})\s*[\w.:]+\([^{}()]*\)$", ""),
    ("statement removed", r"(?<=^ {2})\s*[\w.\[\]]+ = [^{}()]+(?<!,)$", ""),
)
NOT_CODE = re.compile(r"--[^\n]*|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|\[\[.*?\]\]", re.DOTALL)


def in_lua(text: str) -> Iterator[Change]:
    """Yield what can be changed in a Lua file."""
    start = 0
    code = NOT_CODE.sub(lambda it: re.sub(".", " " if it[0][0] == "-" else "S", it[0]), text)
    for line in code.splitlines(keepends=True):
        for kind, pattern, after in PATTERNS:
            for found in re.finditer(pattern, line.rstrip()):
                new = after
                for number, (a, b) in enumerate(found.regs):
                    new = new.replace(f"\\{number}", text[start + a : start + b])
                yield kind, start + found.start(), start + found.end(), new
        start += len(line)


def draw(seed: int, count: int) -> Iterator[Mutant]:
    """Draw three of four from the Python and the others from the Lua, each on a random line."""
    chance = random.Random(seed)
    for suffix, share in ((".py", count * 3 // 4), (".lua", count - count * 3 // 4)):
        texts = {path: path.read_text() for path in sorted(FOLDERS[suffix].rglob(f"*{suffix}"))}
        rows = [(path, row) for path in texts for row in range(texts[path].count("\n"))]
        drawn: set[tuple[Path, int]] = set()
        while len(drawn) < share:
            path, row = chance.choice(rows)
            text = texts[path]
            changes = in_python(text) if suffix == ".py" else in_lua(text)
            here = [change for change in changes if text.count("\n", 0, change[1]) == row]
            if here and (path, row) not in drawn:
                drawn.add((path, row))
                kind, a, b, new = chance.choice(here)
                start, end = text.rfind("\n", 0, a) + 1, text.find("\n", b)
                yield {
                    "file": str(path.relative_to(ROOT)),
                    "line": row + 1,
                    "kind": kind,
                    "before": text[start:end],
                    "after": text[start:a] + new + text[b:end],
                    "context": "".join(text[:start].splitlines(keepends=True)[-2:]),
                }


def place_of(mutant: Mutant) -> tuple[Path, str] | None:
    """Return where the text of a mutant stands now, and that file with the mutant in it."""
    own = ROOT / mutant["file"]
    for above in (mutant["context"], ""):
        old, new = (f"\n{above}{mutant[which]}\n" for which in ("before", "after"))
        for path in (own, *sorted(FOLDERS[own.suffix].rglob(f"*{own.suffix}"))):
            text = "\n" + path.read_text() if path.exists() else ""
            if text.count(old) == 1:
                return path, text.replace(old, new)[1:]
    return None


def tests_about(path: Path) -> list[str]:
    """Return the files of tests whose name or imports say that they are about a file."""
    words = path.relative_to(FOLDERS[path.suffix]).with_suffix("").parts
    *folders, name = (word for word in words if word.strip("_") != "init")
    folder = ".".join(folders)
    named = re.compile(rf"_{name}s?(_|$)")
    imports = re.compile(rf"{folder}\.{name}\b|from {folder} import [^()\n]*\b{name}\b")
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(t) for t in tests if named.search(t.stem) or imports.search(t.read_text())]


def first_failure(*chosen: str) -> str | None:
    """Run tests; return the id of the first that fails, or how pytest ended."""
    command = [sys.executable, "-m", "pytest", "-xq", "-n", "1", *chosen]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", ran.stdout, re.MULTILINE)
    return failed[1] if failed else None if ran.returncode in (0, 5) else ran.stdout[-200:]


def caught(mutant: Mutant) -> Mutant:
    """Put a mutant into this checkout, and return which test catches it."""
    if (found := place_of(mutant)) is None:
        return {"caught": None, "why": "its text is gone"}
    path, text = found
    own, begun, about = path.read_text(), time.monotonic(), tests_about(path)
    failing: list[str] = []  # without the mutant, or not always
    for tests, layer in [*((about, x) for x in LAYERS if about), *(([], x) for x in LAYERS)]:
        try:
            path.write_text(text)
            while failed := first_failure("-m", layer, *tests, *failing):
                is_again = first_failure(failed)
                path.write_text(own)
                if is_again and not first_failure(failed):
                    seconds = round(time.monotonic() - begun)
                    return {"caught": failed, "layer": layer, "seconds": seconds}
                if "::" not in failed:  # this tree cannot run them
                    break
                failing.append(f"--deselect={failed}")
                path.write_text(text)
        finally:
            path.write_text(own)
    return {"caught": None, "seconds": round(time.monotonic() - begun)}


def main() -> None:
    """Draw mutants, or run those of a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="run these, draw none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    asked = parser.parse_args()
    if asked.file is None:
        results = draw(asked.seed, asked.count)
    else:
        mutants = [json.loads(line) for line in asked.file.read_text().splitlines()]
        results = (mutant | caught(mutant) for mutant in mutants)
    for result in results:
        print(json.dumps(result, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
