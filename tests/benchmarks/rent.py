"""What each statement earns: how much worse the best bounds are without it.

    python -m tests.benchmarks.rent [presets] [recorded] [trained]
    python -m tests.benchmarks.rent greedy

A statement stays where leaving it out makes some preset at its defaults, the class of trained networks of
figures/overlay.json, or the median of the recorded settings, at least 2% worse. Each row: the largest factor for gap
and risk and where it is; of the recorded settings the median factor and how many lose at least 2%. `greedy` leaves out,
one after the other, what costs least together with all that is gone, while that is less than 2%.

Two that earn nothing stay: the theorem `trauger2024` is made of T3, and the risk of stored weights (G13) of
uniform-margin.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Collection, Iterator
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
def without(gone: Collection[str]) -> Iterator[None]:
    """The library without some statements: out of every registry, or out of what policies may use."""
    names = frozenset(part for name in gone for part in GROUPS.get(name, (name,)))
    flags = {field: value for name in gone for field, value in FLAGS.get(name, {}).items()}
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


def losses(gone: Collection[str], named: Named, whole: list[Logs]) -> list[tuple[str, Logs]]:
    """How much the logs grow in each setting without some statements."""
    with without(gone):
        less = [logs(setting) for _, setting in named]
    return [(where, (b[0] - a[0], b[1] - a[1])) for (where, _), a, b in zip(named, whole, less, strict=True)]


def cell(kind: str, found: list[tuple[str, Logs]], i: int) -> tuple[float, str]:
    """What counts of the losses of one kind of settings, in logs, and its words."""
    if kind == "recorded":
        grown = [each[1][i] for each in found]
        middle = statistics.median(grown)
        return middle, f"{math.exp(middle):.3f}, {sum(each >= NOTICED for each in grown)} of {len(grown)}"
    worst = max(found, key=lambda each: each[1][i])
    return worst[1][i], f"{math.exp(worst[1][i]):.3f} ({worst[0]})"


def table(kind: str) -> None:
    """Print what each statement alone, and some groups, earn."""
    named = KINDS[kind]()
    whole = [logs(setting) for _, setting in named]
    for name in [*single(), *GROUPS]:
        found = losses([name], named, whole)
        print(name, *(cell(kind, found, i)[1] for i in (0, 1)), sep=" | ", flush=True)


def greedy() -> list[str]:
    """Leave out what costs least, again and again; what is gone in the end, together less than 2% everywhere."""
    kinds = {kind: named() for kind, named in KINDS.items()}
    whole = {kind: [logs(setting) for _, setting in named] for kind, named in kinds.items()}
    gone: list[str] = []
    left = single()
    while left:
        worst: dict[str, float] = {}
        for name in left:
            worst[name] = 0.0
            for kind, named in kinds.items():
                if worst[name] < NOTICED:
                    found = losses([*gone, name], named, whole[kind])
                    worst[name] = max(worst[name], *(cell(kind, found, i)[0] for i in (0, 1)))
            print(f"  without {', '.join([*gone, name])}: {math.exp(worst[name]):.4f}", flush=True)
        left = [name for name in left if worst[name] < NOTICED]
        if left:
            gone.append(min(left, key=lambda name: worst[name]))
            left.remove(gone[-1])
            print(f"gone: {', '.join(gone)}: {math.exp(worst[gone[-1]]):.4f}", flush=True)
    return gone


if __name__ == "__main__":
    if "greedy" in sys.argv:
        greedy()
    else:
        for each in sys.argv[1:] or KINDS:
            table(each)
