"""When cycles of garbage are looked for: not while a command is imported or evaluated, nor when the process ends.

Imports and evaluations make objects that stay, so looking through them finds nothing; it took a tenth of `eval`.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

atexit.register(gc.freeze)  # what is frozen is not looked through a last time


@contextmanager
def uncollected() -> Iterator[None]:
    """Without looking for cycles of garbage."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
