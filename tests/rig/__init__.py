"""Everything real that tests run against: Neovims, tmux, agent CLIs, machines; and this folder."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DATA: Final = ROOT / "tests" / "data"
