"""While tests are collected, nothing is started or fetched; and every test has its layer.

It is that of its folder, unless the test names another. So `pytest --collect-only` works on a bare
machine, and a run without some layers is complete.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from rig.fetched import cache

STARTS = {"subprocess.Popen", "socket.connect", "os.posix_spawn", "os.fork", "os.system"}


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if cache.is_closed and event in STARTS:
        raise RuntimeError(f"while tests are collected: {event} {args}")


sys.addaudithook(_refuse)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    cache.is_closed = True
    gc.disable()  # tests and modules are made, and all of them stay
    try:
        return (yield)
    finally:
        cache.is_closed = False
        gc.collect()
        gc.freeze()  # so that they are not searched for garbage again and again
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    known = [line.partition(":")[0] for line in config.getini("markers")]
    layers = known[: known.index("house") + 1]
    for item in items:
        if any(map(item.get_closest_marker, layers)):
            continue
        if (folder := item.path.parent.name) not in layers:
            raise pytest.UsageError(f"{item.nodeid} names none of the layers {', '.join(layers)}")
        item.add_marker(folder)
