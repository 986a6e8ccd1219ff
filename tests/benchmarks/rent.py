"""What each statement earns: how much worse the best bounds are without it.

    python -m tests.benchmarks.rent [presets] [recorded]

A statement stays where leaving it out makes some preset at its defaults, or the median of the recorded settings, at least
2% worse. Each row: the largest factor over the presets for gap and risk and where it is, then over the recorded settings the
median factor and how many lose at least 2%.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from boundcalc.engine.evaluate import Desk
from boundcalc.setting import Setting
from boundcalc.statements.covers import ALWAYS, LEMMAS
from boundcalc.statements.noises import NOISES
from boundcalc.statements.strategies import STRATEGIES
from boundcalc.theorems import BOUNDS, POLICIES
from tests.laws.settings import settings
from tests.recorded.record import NUMBER, SEED

PRESETS: list[tuple[str, dict[str, Any]]] = [("edelman", {"depth": depth}) for depth in (1, 2, 4)] + [
    (name, {}) for name in ("bert", "gpt2", "llama", "vit")
]
SAMPLES = [10**6, 10**8, 10**10, 10**12]
NOTICED = math.log(1.02)
GROUPS = {
    "T13, T14": ("T13", "T14"),
    "V2, V2t": ("V2", "V2t"),
    "all V": tuple(NOISES),
}
FLAGS = {
    "A6, A7": {"meeting": False},
    "G12": {"refining": False},
    "G13": {"stored": False},
    "K1, K2": {"comparison": False},
}
Logs = tuple[float, float]


@contextmanager
def without(name: str) -> Iterator[None]:
    """The library without a statement: out of every registry, or out of what policies may use."""
    names = frozenset(GROUPS.get(name, (name,)))
    strategies, policies = dict(STRATEGIES), dict(BOUNDS)
    for key in names:
        STRATEGIES.pop(key, None)
    for key, policy in policies.items():
        less = replace(policy, lemmas=policy.lemmas - names, laws=policy.laws - names, **FLAGS.get(name, {}))
        BOUNDS[key] = less
        if key in POLICIES:
            POLICIES[key] = less
    try:
        yield
    finally:
        dict.update(STRATEGIES, strategies)
        BOUNDS.update(policies)
        POLICIES.update({key: policies[key] for key in POLICIES})


def candidates() -> list[str]:
    """Everything that can be left out."""
    lemmas = [name for name in LEMMAS if name not in ALWAYS]
    strategies = [name for name, each in STRATEGIES.items() if not (each.every_scale or each.coverless)]
    return [*lemmas, *NOISES, *strategies, *GROUPS, *FLAGS]


def logs(setting: Setting) -> Logs:
    """The best gap and the best risk at training error 0, at most 1 each, in natural logs."""
    desk = Desk(setting.but(train_error=0.0))
    value = desk.value("best")
    risk = 0.0 if value.refusal is not None or value.risk_refusal is not None else min(0.0, value.log_risk)
    gap = 0.0 if value.refusal is not None or value.trivial else min(0.0, value.certificate.log_value)
    return gap, risk


def presets() -> list[tuple[str, Setting]]:
    """Presets at their defaults, from 10^6 to 10^12 samples."""
    return [
        (f"{name}{''.join(f' {value}' for value in fields.values())} m={m:.0e}", Setting.of(name, n_train=m, **fields))
        for name, fields in PRESETS
        for m in SAMPLES
    ]


def losses(named: list[tuple[str, Setting]]) -> Iterator[tuple[str, list[tuple[str, Logs]]]]:
    """For everything that can be left out, how much the logs grow in each setting."""
    whole = [logs(setting) for _, setting in named]
    for name in candidates():
        with without(name):
            less = [logs(setting) for _, setting in named]
        yield name, [(where, (b[0] - a[0], b[1] - a[1])) for (where, _), a, b in zip(named, whole, less, strict=True)]


def main(*which: str) -> None:
    """Print the tables that are asked for; both unless named."""
    if not which or "presets" in which:
        for name, found in losses(presets()):
            worst = [max(found, key=lambda each: each[1][i]) for i in (0, 1)]
            print(
                name,
                *(f"{math.exp(each[1][i]):.3f} ({each[0]})" for i, each in enumerate(worst)),
                sep=" | ",
                flush=True,
            )
    if not which or "recorded" in which:
        drawn = [(str(i), setting) for i, setting in enumerate(settings(SEED, NUMBER))]
        for name, found in losses(drawn):
            cells = []
            for i in (0, 1):
                grown = [each[1][i] for each in found]
                median, many = math.exp(statistics.median(grown)), sum(each >= NOTICED for each in grown)
                cells.append(f"{median:.3f}, {many} of {len(grown)}")
            print(name, *cells, sep=" | ", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
