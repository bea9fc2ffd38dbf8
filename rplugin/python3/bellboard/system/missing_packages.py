"""The packages that this Python lacks, in words.  Imports only the standard library."""

from __future__ import annotations

import sys


def unfit(error: BaseException) -> str:
    """Describe that a module of Python itself is missing; empty if it is something else.

    Its builders leave out what depends on a library that they do not find.
    """
    name = _missing(error)
    if name not in sys.stdlib_module_names:
        return ""
    return f'{sys.executable} was built without its module "{name}"; use another Python'


def unbuilt(error: BaseException) -> str:
    """Describe that a package of others is not installed; empty if it is something else."""
    name = _missing(error)
    if not name or name == __name__.partition(".")[0]:
        return ""
    where = "install it there, or run `:Bellboard build` in Neovim if the option python is not set"
    return f'{sys.executable} has no module "{name}"; {where}'


def _missing(error: BaseException) -> str:
    name = isinstance(error, ModuleNotFoundError) and error.name
    return (name or "").partition(".")[0]
