"""What `boundcalc eval` has to say, before it is put into a format."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from boundcalc.base.errors import NoSolution
from boundcalc.base.rounding import at_least
from boundcalc.base.value import Value
from boundcalc.cli.setting import Question, full_json
from boundcalc.cli.values import short, upper
from boundcalc.engine.evaluate import BoundValue, Desk, Proved, compare
from boundcalc.engine.growth import Growth, growth
from boundcalc.formulas.theorems import BOUNDS
from boundcalc.setting import Setting
from boundcalc.statements.strategies import STRATEGIES, stored_weights

if TYPE_CHECKING:
    from boundcalc.engine.links import Needed as FirstLink
    from boundcalc.engine.why import Why

_TARGET = 0.1
_PATIENCE = 2.0
"""Seconds of evaluation above which the smallest m is only looked for when asked."""


class Row(NamedTuple):
    """One bound and how it grows."""

    value: BoundValue
    growth: dict[str, Growth | None]

    def to_json(self) -> dict[str, Any]:
        """The result object of the schema."""
        found = {
            variable: None if g is None else {"text": str(g), "exponent": g.exponent, "log_exponent": g.log_exponent}
            for variable, g in self.growth.items()
        }
        return {**self.value.to_json(), "growth": found}


class Needed(NamedTuple):
    """The smallest m for one quantity, or why there is none."""

    quantity: str
    bound: str
    m: int | None
    why_not: str = ""

    def to_json(self) -> dict[str, Any]:
        """As in the schema."""
        return {"target": _TARGET, "bound": self.bound, "m": self.m, "reason": self.why_not or None}


class Report(NamedTuple):
    """The answer to one question."""

    question: Question
    rows: tuple[Row, ...]
    needed: tuple[Needed, ...] = ()
    why: tuple[Why, ...] | None = None
    unstored: BoundValue | None = None
    """The bound that counts stored weights, without that premise (G13)."""

    @property
    def best(self) -> BoundValue | None:
        """The least gap bound among the rows that are proved."""
        proved = [row.value for row in self.rows if row.value.refusal is None and row.value.kind != "proxy"]
        return min(proved, key=lambda value: value.log10, default=None)

    def to_json(self) -> dict[str, Any]:
        """The document of the schema."""
        out: dict[str, Any] = {
            "setting": full_json(self.question.setting),
            "assumed": [item.field for item in described(self.question) if item.assumed],
            "results": [row.to_json() for row in self.rows],
        }
        if self.needed:
            out["smallest_m"] = {needed.quantity: needed.to_json() for needed in self.needed}
        if self.why is not None and self.best is not None:
            out["why"] = {"bound": self.best.name} | {found.quantity: found.to_json() for found in self.why}
        bits = self.question.setting.architecture.bits
        if bits is not None:
            weights = sum(stored_weights(self.question.setting).values())
            plain = None if self.unstored is None else self.unstored.to_json()
            out["stored_weights"] = {"weights": weights, "bits": bits, "without": plain}
        return out


def ask(question: Question, bounds: Sequence[str], *, solve: bool | None, why: bool = False) -> Report:
    """Evaluates the bounds (all, when none is named) and, unless that takes long, the smallest m; with `why`, the account."""
    started = time.process_time()
    desk = Desk(question.setting)
    values = compare(question.setting, bounds or None, desk=desk)
    grown = {id(value.by_gap): value for value in values}  # several policies may share one proof
    growths = {key: _growths(value) for key, value in grown.items()}
    rows = tuple(Row(value, growths[id(value.by_gap)]) for value in values)
    report = Report(question, rows, unstored=_unstored(values))
    best = report.best
    if best is not None and why:
        from boundcalc.engine.why import why as account

        report = report._replace(why=tuple(account(best, desk)))
    if best is None or solve is False:
        return report
    if solve is None and time.process_time() - started > _PATIENCE:
        reason = "not looked for, as one evaluation takes long: --solve does"
        return report._replace(needed=tuple(Needed(quantity, best.name, None, reason) for quantity in ("gap", "risk")))
    return report._replace(
        needed=tuple(_need(question.setting, best.name, quantity, desk) for quantity in ("gap", "risk"))
    )


def counts_stored(value: BoundValue) -> bool:
    """Whether the gap or the risk rests on how many bits a weight has (G13)."""
    proofs = (value.by_gap, value.by_risk)
    return any(proof is not None and STRATEGIES[proof.certificate.strategy].stored for proof in proofs)


def _unstored(values: Sequence[BoundValue]) -> BoundValue | None:
    resting = next((value for value in values if counts_stored(value)), None)
    return None if resting is None else compare(resting.setting.but(bits=None), [resting.name])[0]


def _growths(value: BoundValue) -> dict[str, Growth | None]:
    if value.by_gap is None or value.trivial:
        return {"T": None, "m": None}
    return {"T": growth(value.by_gap, "T"), "m": growth(value.by_gap, "m")}


def _need(setting: Setting, bound: str, quantity: Any, desk: Desk) -> Needed:
    from boundcalc.engine.solve import solve

    try:
        found = solve(setting, "m", _TARGET, bound=bound, quantity=quantity, desk=desk, alone=True)
        return Needed(quantity, bound, round(found.value))
    except NoSolution as error:
        return Needed(quantity, bound, None, str(error))


# -- words and numbers

_SYMBOLS = {
    "seq_len": "T",
    "n_train": "m",
    "margin": "gamma",
    "train_error": "train error",
    "input_radius": "input radius",
    "position_radius": "position radius",
    "variance_floor": "variance floor",
    "embedding_norm": "embedding norm",
    "readout": "read-out",
    "lipschitz": "loss Lipschitz constant",
    "bits": "bits of a weight",
}
_ALWAYS = ("depth", "seq_len", "d", "heads", "activation", "normaliser", "normalisation", "readout", "input_radius")
_WHEN_SET = ("d_head", "d_ff", "kv_heads", "temperature", "residual", "bias", "gated", "rope", "causal", "vocabulary")
_WHEN_SET_TOO = ("d_patch", "positions", "position_radius", "embedding_norm", "pooler", "variance_floor", "classes")
_WHEN_SET_TOO += ("bits",)
_SAMPLE = ("n_train", "delta", "margin", "train_error", "lipschitz")


_MOST_NAMED = 4
"""Budgets that are listed by name."""


class Described(NamedTuple):
    """A value of the setting as it is shown."""

    field: str
    label: str
    value: str
    assumed: bool


def described(question: Question) -> list[Described]:
    """Every value that matters, with whether it was assumed."""
    setting = question.setting
    architecture = setting.architecture
    out: list[Described] = []
    if architecture.layers is not None:
        out.append(Described("layers", "layers", f"{len(architecture.layers)} listed", False))
        names: tuple[str, ...] = ("seq_len", "input_radius", "classes", *(("bits",) if architecture.bits else ()))
        names = tuple(name for name in names if architecture.unread(name) is None)
    else:
        assumed = question.assumed("style") and question.assumed("preset")
        out.append(Described("style", "style", architecture.style, assumed))
        names = (*_ALWAYS, *(name for name in (*_WHEN_SET, *_WHEN_SET_TOO) if _is_set(question, name)))
        if architecture.normalisation in ("layernorm", "rmsnorm"):
            names = (*names, "eps")
        if architecture.vocabulary:
            names = tuple(name for name in names if name != "input_radius")
    for name in names:
        out.append(_describe(question, name, _field(setting, name)))
    if setting.norms.C is not None:
        out.append(_describe(question, "C", setting.norms.C))
    if setting.norms.budgets:
        keys = list(setting.norms.budgets)
        of = f"{len(keys)} given" if len(keys) > _MOST_NAMED else f"of {' '.join(keys)}"
        measured = ", measured" if setting.norms.measured else ""
        rest = "; C for the rest" if setting.norms.C is not None else ""
        out.append(Described("budgets", "norm budgets", f"{of}{measured}{rest}", False))
    for name in _SAMPLE:
        value = getattr(setting.sample, name)
        if value is not None:
            out.append(_describe(question, name, value))
    if setting.sample.measured:
        seen = " and ".join(name.replace("_", " ") for name in setting.sample.measured)
        out.append(Described("measured", "chosen after a look:", seen, False))
    return out


def _describe(question: Question, name: str, value: Any) -> Described:
    return Described(name, _SYMBOLS.get(name, name), _value(value), question.assumed(name))


def _field(setting: Setting, name: str) -> Any:
    if name == "normaliser":
        normaliser = setting.architecture.normaliser
        custom = f" (c = {normaliser.c:g}, mu = {normaliser.mu:g})" if normaliser.name == "custom" else ""
        return normaliser.name + custom
    if name == "temperature":
        return setting.architecture.normaliser.temperature
    return getattr(setting.architecture, name)


def _is_set(question: Question, name: str) -> bool:
    value = _field(question.setting, name)
    plain = (None, False, 0, "none") if name != "classes" else (1,)
    return value not in plain or not question.assumed(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return short(value) if isinstance(value, int | float) else str(value)


TRIVIAL = "trivial"
"""Shown in place of a value whose proof covers nothing."""
NO_MEMBER = "-"
"""Shown in place of a risk bound that speaks of no network."""


def _amounts(value: BoundValue) -> tuple[str, str]:
    """The gap and the risk bound as they are shown: capped at 1, with the uncapped value beside; proxies with '~'."""
    mark = "~" if value.kind == "proxy" else ""
    risk = NO_MEMBER if value.risk_refusal is not None else _amount(value.of("risk"))
    return (mark + _amount(value.of("gap")), mark + risk)


def _amount(value: Value) -> str:
    return TRIVIAL if value.trivial else amount(value.log10)


def amount(log10: float) -> str:
    """A value by its logarithm: capped at 1, with the uncapped value beside it."""
    return upper(log10) if log10 < -1e-9 else f"1 ({upper(log10)})" if log10 > 1e-9 else "1"


def _vacuity(value: BoundValue) -> str:
    """Which of the two says nothing: "no", "gap", "risk" or "yes" for all there is."""
    if value.risk_refusal is not None:
        return "yes" if value.vacuous else "no"
    gap, risk = value.vacuous, value.risk_vacuous
    return "yes" if gap and risk else "gap" if gap else "risk" if risk else "no"


HEADINGS = ("bound", "kind", "gap <=", "risk <=", "vacuous", "strategy", "with T", "with m", "dominated by")


def cells(row: Row) -> tuple[str, ...]:
    """A row's text under `HEADINGS`; a refused bound has its name, its kind and the reason."""
    value = row.value
    if value.refusal is not None:
        return value.name, "refused", str(value.refusal)
    dominant = None if value.trivial else value.dominant
    return (
        value.name,
        value.kind.replace("_", " "),
        *_amounts(value),
        _vacuity(value),
        *(("", "", "") if value.trivial else (value.strategy, _growth(row.growth["T"]), _growth(row.growth["m"]))),
        "" if dominant is None else f"{dominant[0]} {dominant[1]:.0%}",
    )


def _growth(found: Growth | None) -> str:
    return "?" if found is None else str(found)


def notes(report: Report) -> list[str]:
    """What must be said below the table."""
    sample = report.question.setting.sample
    assumed = " (assumed)" if report.question.assumed("train_error") else ""
    refusals = {str(row.value.risk_refusal): None for row in report.rows if row.value.risk_refusal is not None}
    if sample.lipschitz is not None:
        lines = [
            f"The loss is any with values in [0, 1] and Lipschitz constant {sample.lipschitz:g}; no margin is meant. "
            "Risk is its expectation where the training loss is 0: the gap bound."
        ]
    else:
        lines = [f"The gap bound holds for every training error. No risk bound: {text}" for text in refusals] or [
            f"The gap bound holds for every training error; the risk bound at train error {sample.train_error:g}"
            f"{assumed}. Gap and risk are different quantities: do not compare the columns."
        ]
    if any(row.value.kind == "proxy" for row in report.rows):
        lines.append("~ marks proxies: numbers that lack constants or the price of a choice, not bounds.")
    lines += _stored_lines(report)
    lines += _trivial_lines(report)
    lines += _alike_lines(report)
    said = [
        _need_line(needed, sample.train_error, assumed) for needed in report.needed if needed.why_not not in refusals
    ]
    return lines + said


def _stored_lines(report: Report) -> list[str]:
    """Which bounds rest on the bits of a weight, and what they are without."""
    bits = report.question.setting.architecture.bits
    if bits is None:
        return []
    weights = short(sum(stored_weights(report.question.setting).values()))
    premise = (
        f"each of the {weights} stored weights is a number of {bits} bits, and that was fixed before the data (G13)"
    )
    without = report.unstored
    if without is None:
        return [f"No bound here gains from the premise that {premise}."]
    if without.refusal is not None:
        return [f"{without.name!r} rests on a premise: {premise}. Without it there is no bound: {without.refusal}"]
    gap, risk = _amounts(without)
    return [f"{without.name!r} rests on a premise: {premise}. Without it: gap {_at_most(gap)}, risk {_at_most(risk)}."]


def _at_most(amount: str) -> str:
    return {TRIVIAL: TRIVIAL, NO_MEMBER: "of no network"}.get(amount, f"<= {amount}")


def _trivial_lines(report: Report) -> list[str]:
    """What `trivial` means here, and how far each such row is from a statement."""
    trivial = [row.value for row in report.rows if row.value.refusal is None and row.value.trivial]
    if not trivial:
        return []
    parts = [f"{value.name!r} {_distance(value.needed)}" for value in trivial if value.needed is not None]
    m = short(report.question.setting.sample.n_train)
    return [
        f"trivial: at m = {m} no cover is worth its price, so the least proof compares nothing. "
        + "; ".join(parts)
        + "."
    ]


def _alike_lines(report: Report) -> list[str]:
    """Bounds of several names whose proofs are one, and what a name could have used besides."""
    groups: list[list[BoundValue]] = []
    for row in report.rows:
        value = row.value
        if value.refusal is not None or value.trivial or value.name not in BOUNDS:
            continue
        same = next((group for group in groups if _one_proof(group[0], value)), None)
        if same is None:
            groups.append([value])
        else:
            same.append(value)
    lines: list[str] = []
    for group in groups:
        if len(group) < 2:
            continue
        names = [value.name for value in group]
        shared = frozenset.intersection(*(BOUNDS[name].lemmas for name in names))
        more = {name: sorted(BOUNDS[name].lemmas - shared) for name in names}
        besides = [
            f"{', '.join(lemmas)}, which {name!r} has besides, is not used" for name, lemmas in more.items() if lemmas
        ]
        listed = f"{', '.join(map(repr, names[:-1]))} and {names[-1]!r}"
        both = "both" if len(names) == 2 else "all"
        lines.append(f"{'; '.join([f'{listed} coincide here: one proof, from lemmas that {both} have', *besides])}.")
    return lines


def _one_proof(one: BoundValue, other: BoundValue) -> bool:
    def bare(proof: Proved | None) -> object:
        return None if proof is None else replace(proof.certificate, policy="")

    return bare(one.by_gap) == bare(other.by_gap) and bare(one.by_risk) == bare(other.by_risk)


_POWER = re.compile(r"e\+0*")


def _distance(needed: FirstLink) -> str:
    count = upper(needed.log10_count)
    would = "no m up to 10^300 would do"
    if needed.n_train is not None:
        size = upper(math.log10(needed.n_train))
        whole = math.ceil(float(size))
        would = f"m of {at_least(whole) if whole < 10**6 else _POWER.sub('e', size)} would do"
    return f"needs a cover of log N = {count}, {would}"


def _need_line(needed: Needed, train_error: float, assumed: str) -> str:
    at = (
        f" (train error {train_error:g}{assumed.replace('(', '').replace(')', '')})"
        if needed.quantity == "risk"
        else ""
    )
    if needed.m is None:
        return f"Smallest m with {needed.quantity} <= {_TARGET:g}{at}: {needed.why_not}."
    return f"Smallest m with {needed.quantity} <= {_TARGET:g}{at}: {at_least(needed.m)}, by {needed.bound!r}."
