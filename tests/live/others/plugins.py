"""Find other plugins in a folder, or clone them into the cache."""

from __future__ import annotations

from pathlib import Path

from rig.fetched import debian
from rig.fetched.cache import Missing, kept, run

HOMES = {
    "snacks.nvim": "folke",
    "fzf-lua": "ibhagwan",
    "mini.nvim": "nvim-mini",
    "telescope.nvim": "nvim-telescope",
    "plenary.nvim": "nvim-lua",
    "lualine.nvim": "nvim-lualine",
    "heirline.nvim": "rebelot",
    "sidekick.nvim": "folke",
    "claudecode.nvim": "coder",
    "toggleterm.nvim": "akinsho",
    "lazy.nvim": "folke",
    "bufferline.nvim": "akinsho",
    "persistence.nvim": "folke",
    "auto-session": "rmagatti",
}


def found(name: str, folder: Path | None) -> Path:
    """Return the folder of a plugin, or Debian's fzf; raise Missing if it is not available."""
    if name == "fzf":
        return debian.tree("fzf", ("trixie", "sid"), ("fzf",), programs=("fzf",))
    if folder and (folder / name).is_dir():
        return folder / name

    def fill(draft: Path, _: Path) -> None:
        address = f"https://github.com/{HOMES[name]}/{name}"
        run("git", "clone", "--quiet", "--depth", "1", address, draft / "plugin")

    try:
        return kept(f"plugin-{name}", fill) / "plugin"
    except Missing:
        raise Missing(f"cannot get {name} (--plugins FOLDER that has it)") from None
