"""The rows as lines for a person, and as the table of doc/truth.md."""

from __future__ import annotations

from truth.play import Row


def line(row: Row) -> str:
    """All of a row."""
    slowest = max(row.delays, default=0.0)
    wrong = f"  wrong for {', '.join(f'{w:.2f}' for w in row.wrong)}" if row.wrong else ""
    return (
        f"{row.scene.name:28} {row.agrees:7.2%} of {row.compared:5.1f} s  "
        f"slowest of {len(row.delays):2} {slowest:.2f} s  gone {row.left:.2f} s{wrong}"
        + (f"\n  {row.failure}" if row.failure else "")
    )
