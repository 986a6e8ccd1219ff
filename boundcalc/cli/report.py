"""What `boundcalc eval` has to say, before it is written as text or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from boundcalc.base.errors import NoSolution
from boundcalc.base.schema import write
from boundcalc.cli.setting import Question, defaults_in, full_json
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import Evaluator, compare
from boundcalc.engine.floors import floors_of
from boundcalc.engine.growth import Growth, growth
from boundcalc.statements.strategies import STRATEGIES, stored_weights
from boundcalc.theorems import POLICIES, known_bound

if TYPE_CHECKING:
    from pathlib import Path

    from boundcalc.engine.why import Why
    from boundcalc.proof.floor import Floor
    from boundcalc.statements.strategies import Quantity

TARGET = 0.1


class Needed(NamedTuple):
    """The smallest m for one quantity, or why there is none."""

    quantity: str
    bound: str
    m: int | None
    why_not: str = ""


class Report(NamedTuple):
    """The answer to one question; growths are by the id of a proof, `unstored` is the bound without G13's premise."""

    question: Question
    bounds: tuple[BoundValue, ...]
    growths: Mapping[int, Mapping[str, Growth | None]]
    floors: Mapping[Quantity, Floor] = {}
    needed: tuple[Needed, ...] = ()
    why: tuple[Why, ...] | None = None
    unstored: BoundValue | None = None

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

    @property
    def weights(self) -> int:
        """How many weights are stored."""
        return sum(stored_weights(self.question.setting).values())

    def _result(self, value: BoundValue) -> dict[str, Any]:
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
            "assumed": defaults_in(self.question),
            "results": [self._result(value) for value in self.bounds],
        }
        if self.needed:
            out["smallest_m"] = {
                n.quantity: {"target": TARGET, "bound": n.bound, "m": n.m, "reason": n.why_not or None}
                for n in self.needed
            }
        if self.why is not None and self.best is not None:
            out["why"] = {"bound": self.best.name} | {why.quantity: why.to_json() for why in self.why}
        bits = self.question.setting.architecture.bits
        if bits is not None:
            plain = None if self.unstored is None else self.unstored.to_json()
            out["stored_weights"] = {"weights": self.weights, "bits": bits, "without": plain}
        return out


def ask(question: Question, bounds: Sequence[str], *, solve: bool, why: bool = False) -> Report:
    """Evaluates the bounds (all, when none is named); with `solve` the smallest m, with `why` the account."""
    evaluator = Evaluator(question.setting)
    values: list[BoundValue] = []
    for name in bounds or POLICIES:
        values.append(evaluator.value(known_bound(name)))
    growths = {id(value.by_gap): _growths(value) for value in {id(value.by_gap): value for value in values}.values()}
    quantities: tuple[Quantity, ...] = ("gap", "risk") if any(value.kind == "bound" for value in values) else ()
    stored = next((value for value in values if counts_stored(value)), None)
    plain = None if stored is None else compare(stored.setting.but(bits=None), [stored.name])[0]
    report = Report(question, tuple(values), growths, floors_of(question.setting, quantities), unstored=plain)
    best = report.best
    if best is not None and why:
        from boundcalc.engine.why import why as account

        report = report._replace(why=tuple(account(best, evaluator)))
    if best is None or not solve:
        return report
    needed = (_need(question, best.name, quantity, evaluator) for quantity in ("gap", "risk"))
    return report._replace(needed=tuple(needed))


def write_certificates(best: BoundValue | None, files: Mapping[str, Path | None]) -> None:
    """The proofs of the best bound to the file of each quantity; refuses where there is none to write."""
    for quantity, file in files.items():
        if file is None:
            continue
        if best is None or best.of(quantity).trivial:
            reason = f"the best {quantity} bound is trivial" if best else "no bound was found"
            raise click.ClickException(f"{reason}: there is no proof to write")
        best.of(quantity).certificate.save(file)


def counts_stored(value: BoundValue) -> bool:
    """Whether the gap or the risk is based on how many bits a weight has (G13)."""
    return any(STRATEGIES[proof.certificate.strategy].stored for proof in value.proofs)


def _growths(value: BoundValue) -> dict[str, Growth | None]:
    if value.refusal is not None or value.trivial:
        return {"T": None, "m": None}
    return {"T": growth(value.of("gap"), "T"), "m": growth(value.of("gap"), "m")}


def _need(question: Question, bound: str, quantity: Any, evaluator: Evaluator) -> Needed:
    from boundcalc.engine.solve import solve

    try:
        solution = solve(question.setting, "m", TARGET, bound=bound, quantity=quantity, evaluator=evaluator, alone=True)
        return Needed(quantity, bound, round(solution.value))
    except NoSolution as error:
        return Needed(quantity, bound, None, str(error))
