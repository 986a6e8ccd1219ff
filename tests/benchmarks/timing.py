"""How long things take: measured in turn, so that others on the machine slow all alike; the least of some rounds."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable


def least(
    *runs: Callable[[], object], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, ...]:
    """The least seconds of each."""
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            start = clock()
            run()
            best[i] = min(best[i], clock() - start)
    return tuple(best)


def fresh(*words: str) -> Callable[[], object]:
    """A new interpreter with these arguments, on one thread."""
    environment = dict(os.environ) | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    return lambda: subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)


def of_processes() -> float:
    """Processor time of interpreters that have ended: other users of the machine count less."""
    times = os.times()
    return times.children_user + times.children_system
