"""What each statement earns: how much worse the best bounds are without it.

    python -m tests.benchmarks.rent [presets] [recorded] [trained]

A statement stays where leaving it out makes some preset at its defaults, the class of trained networks of
figures/overlay.json, or the median of the recorded settings, at least 2% worse. Each row: the largest factor for gap
and risk and where it is; of the recorded settings the median factor and how many lose at least 2%.

Two that earn nothing stay: the theorem `trauger2024` is made of T3, and the risk of stored weights (G13) of
uniform-margin.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from boundcalc.engine.evaluate import Evaluator
from boundcalc.setting import Setting
from boundcalc.statements.noises import NOISES
from boundcalc.statements.premise import no_member
from boundcalc.statements.strategies import STRATEGIES
from boundcalc.theorems import BOUNDS, POLICIES
from tests.laws.settings import settings
from tests.recorded.record import NUMBER, SEED

PRESETS: list[tuple[str, dict[str, Any]]] = (
    [("edelman", {"depth": depth}) for depth in (1, 2, 4)]
    + [(name, {}) for name in ("bert", "gpt2", "llama", "vit")]
    + [("bert", {"bits": 16})]
)
SAMPLES = [10**6, 10**8, 10**10, 10**12]
TRAINED = Path(__file__).parents[2] / "figures/overlay.json"
NOTICED = math.log(1.02)
GROUPS = {
    "T13, T14": ("T13", "T14"),
    "all V": tuple(NOISES),
}
FLAGS = {
    "A6, A7": {"meeting": False},
    "G12": {"refining": False},
    "G13": {"stored": False},
    "K": {"comparison": False},
}
Logs = tuple[float, float]
Named = list[tuple[str, Setting]]


@contextmanager
def without(gone: str) -> Iterator[None]:
    """The library without a statement or a group: out of every registry, or out of what policies may use."""
    names, flags = frozenset(GROUPS.get(gone, (gone,))), FLAGS.get(gone, {})
    strategies, policies = dict(STRATEGIES), dict(BOUNDS)
    for key in names:
        STRATEGIES.pop(key, None)
    for key, policy in policies.items():
        less = replace(policy, lemmas=policy.lemmas - names, laws=policy.laws - names, **flags)
        BOUNDS[key] = less
        if key in POLICIES:
            POLICIES[key] = less
    try:
        yield
    finally:
        dict.update(STRATEGIES, strategies)
        BOUNDS.update(policies)
        POLICIES.update({key: policies[key] for key in POLICIES})


def single() -> list[str]:
    """Everything that `best` may be without, chains apart."""
    strategies = [name for name, each in STRATEGIES.items() if each.quantity == "risk" and not each.coverless]
    return [*sorted(POLICIES["best"].lemmas), *NOISES, *strategies, *FLAGS]


def logs(setting: Setting) -> Logs:
    """The best gap and the best risk at training error 0, at most 1 each, in natural logs."""
    evaluator = Evaluator(setting.but(train_error=0.0), no_member)
    value = evaluator.value("best")
    risk = 0.0 if value.refusal is not None or value.risk_refusal is not None else min(0.0, value.log_risk)
    gap = 0.0 if value.refusal is not None or value.trivial else min(0.0, value.certificate.log_value)
    return gap, risk


def presets() -> Named:
    """Presets at their defaults, from 10^6 to 10^12 samples."""
    return [
        (f"{name}{''.join(f' {value}' for value in fields.values())} m={m:.0e}", Setting.of(name, n_train=m, **fields))
        for name, fields in PRESETS
        for m in SAMPLES
    ]


def trained() -> Named:
    """The class that holds the trained networks of a figure, from 10^6 to 10^12 samples."""
    setting = Setting.from_json(json.loads(TRAINED.read_text(encoding="utf-8"))["facts"]["setting"])
    return [(f"trained m={m:.0e}", setting.but(n_train=m)) for m in SAMPLES]


def recorded() -> Named:
    """The settings whose values are recorded."""
    return [(str(i), setting) for i, setting in enumerate(settings(SEED, NUMBER))]


KINDS = {"presets": presets, "trained": trained, "recorded": recorded}


def words(kind: str, grown: list[tuple[str, float]]) -> str:
    """How much the logs of one kind of settings grow."""
    if kind == "recorded":
        logs = [log for _, log in grown]
        noticed = sum(log >= NOTICED for log in logs)
        return f"{math.exp(statistics.median(logs)):.3f}, {noticed} of {len(logs)}"
    where, most = max(grown, key=lambda each: each[1])
    return f"{math.exp(most):.3f} ({where})"


def table(kind: str) -> None:
    """Print what each statement alone, and some groups, earn."""
    named = KINDS[kind]()
    whole = [logs(setting) for _, setting in named]
    for name in [*single(), *GROUPS]:
        with without(name):
            less = [logs(setting) for _, setting in named]
        grown = [[(w, b[i] - a[i]) for (w, _), a, b in zip(named, whole, less, strict=True)] for i in (0, 1)]
        print(name, *(words(kind, each) for each in grown), sep=" | ", flush=True)


if __name__ == "__main__":
    for each in sys.argv[1:] or KINDS:
        table(each)
