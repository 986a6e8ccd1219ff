"""What `boundcalc eval` has to say, before it is put into a format."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from boundcalc.base.errors import NoSolution
from boundcalc.base.schema import write
from boundcalc.cli.described import described
from boundcalc.cli.setting import Question, full_json
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import Evaluator, compare
from boundcalc.engine.floors import floors_of
from boundcalc.engine.growth import Growth, growth
from boundcalc.setting import Setting
from boundcalc.statements.strategies import STRATEGIES, stored_weights

if TYPE_CHECKING:
    from pathlib import Path

    from boundcalc.engine.why import Why
    from boundcalc.proof.floor import Floor
    from boundcalc.statements.strategies import Quantity

TARGET = 0.1
_PATIENCE = 2.0
"""Seconds of evaluation above which the smallest m is only looked for when asked."""


class Needed(NamedTuple):
    """The smallest m for one quantity, or why there is none."""

    quantity: str
    bound: str
    m: int | None
    why_not: str = ""

    def to_json(self) -> dict[str, Any]:
        """As in the schema."""
        return {"target": TARGET, "bound": self.bound, "m": self.m, "reason": self.why_not or None}


class Report(NamedTuple):
    """The answer to one question."""

    question: Question
    bounds: tuple[BoundValue, ...]
    growths: Mapping[int, Mapping[str, Growth | None]]
    """By the id of a bound's proof, which several bounds may share."""
    floors: Mapping[Quantity, Floor] = {}
    """Floors under every bound of the gap and the risk that is neither a proxy nor about measured numbers."""
    needed: tuple[Needed, ...] = ()
    why: tuple[Why, ...] | None = None
    unstored: BoundValue | None = None
    """The bound that counts stored weights, without that premise (G13)."""

    @property
    def best(self) -> BoundValue | None:
        """The least gap bound among those that are proved."""
        return min(self.proved("gap"), key=lambda value: value.log10, default=None)

    def proved(self, quantity: Quantity) -> list[BoundValue]:
        """The bounds of a quantity that are proved."""
        proved = [value for value in self.bounds if value.refusal is None and value.kind != "proxy"]
        return [value for value in proved if quantity == "gap" or value.risk_refusal is None]

    def growth(self, value: BoundValue) -> Mapping[str, Growth | None]:
        """How a bound grows in T and m."""
        return self.growths[id(value.by_gap)]

    def result(self, value: BoundValue) -> dict[str, Any]:
        """The result object of the schema."""
        growth = {
            variable: None if g is None else {"text": str(g), "exponent": g.exponent, "log_exponent": g.log_exponent}
            for variable, g in self.growth(value).items()
        }
        below: dict[str, Any] = {}
        for quantity, floor in self.floors.items():
            if value in self.proved(quantity) and value.kind == "bound":
                prefix = "" if quantity == "gap" else "risk_"
                construction = write(floor.construction, complete=True)
                shown = {"value": floor.value, "of": floor.of, "by": floor.by, "construction": construction}
                below |= {f"{prefix}floor": shown, f"{prefix}ratio": value.ratio_to(floor, quantity)}
        return {**value.to_json(), **below, "growth": growth}

    def to_json(self) -> dict[str, Any]:
        """The document of the schema."""
        out: dict[str, Any] = {
            "setting": full_json(self.question.setting),
            "assumed": [item.field for item in described(self.question) if item.assumed],
            "results": [self.result(value) for value in self.bounds],
        }
        if self.needed:
            out["smallest_m"] = {needed.quantity: needed.to_json() for needed in self.needed}
        if self.why is not None and self.best is not None:
            out["why"] = {"bound": self.best.name} | {why.quantity: why.to_json() for why in self.why}
        bits = self.question.setting.architecture.bits
        if bits is not None:
            weights = sum(stored_weights(self.question.setting).values())
            plain = None if self.unstored is None else self.unstored.to_json()
            out["stored_weights"] = {"weights": weights, "bits": bits, "without": plain}
        return out


def ask(question: Question, bounds: Sequence[str], *, solve: bool | None, why: bool = False) -> Report:
    """Evaluates the bounds (all, when none is named) and, unless that takes long, the smallest m.

    With `why`, the account.
    """
    started = time.process_time()
    evaluator = Evaluator(question.setting)
    values = compare(question.setting, bounds or None, evaluator=evaluator)
    grown = {id(value.by_gap): value for value in values}  # several policies may share one proof
    growths = {key: _growths(value) for key, value in grown.items()}
    quantities: tuple[Quantity, ...] = ("gap", "risk") if any(value.kind == "bound" for value in values) else ()
    floors = floors_of(question.setting, quantities)
    report = Report(question, tuple(values), growths, floors, unstored=_unstored(values))
    best = report.best
    if best is not None and why:
        from boundcalc.engine.why import why as account

        report = report._replace(why=tuple(account(best, evaluator)))
    if best is None or solve is False:
        return report
    if solve is None and time.process_time() - started > _PATIENCE:
        reason = "not looked for, as one evaluation takes long: --solve does"
        return report._replace(needed=tuple(Needed(quantity, best.name, None, reason) for quantity in ("gap", "risk")))
    return report._replace(
        needed=tuple(_need(question.setting, best.name, quantity, evaluator) for quantity in ("gap", "risk"))
    )


def write_certificates(best: BoundValue | None, gap: Path | None, risk: Path | None) -> None:
    """The proofs of the best bound to the files that are named; refuses where there is none to write."""
    if gap is None and risk is None:
        return
    if best is None:
        raise click.ClickException("no bound was found, so there is no certificate to write")
    if gap is not None:
        if best.trivial:
            raise click.ClickException("the best gap bound is trivial: there is no proof to write")
        best.certificate.save(gap)
    if risk is not None:
        if best.risk_trivial:
            raise click.ClickException("the best risk bound is based on a trivial gap: there is no proof to write")
        best.risk_certificate.save(risk)


def counts_stored(value: BoundValue) -> bool:
    """Whether the gap or the risk is based on how many bits a weight has (G13)."""
    return any(STRATEGIES[proof.certificate.strategy].stored for proof in value.proofs)


def _unstored(values: Sequence[BoundValue]) -> BoundValue | None:
    resting = next((value for value in values if counts_stored(value)), None)
    return None if resting is None else compare(resting.setting.but(bits=None), [resting.name])[0]


def _growths(value: BoundValue) -> dict[str, Growth | None]:
    if value.refusal is not None or value.trivial:
        return {"T": None, "m": None}
    return {"T": growth(value.of("gap"), "T"), "m": growth(value.of("gap"), "m")}


def _need(setting: Setting, bound: str, quantity: Any, evaluator: Evaluator) -> Needed:
    from boundcalc.engine.solve import solve

    try:
        solution = solve(setting, "m", TARGET, bound=bound, quantity=quantity, evaluator=evaluator, alone=True)
        return Needed(quantity, bound, round(solution.value))
    except NoSolution as error:
        return Needed(quantity, bound, None, str(error))
