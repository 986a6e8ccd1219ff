"""What `boundcalc eval` has to say, before it is written as text or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from boundcalc.base.errors import NoSolution
from boundcalc.base.schema import write
from boundcalc.cli._setting import Question, defaults_in
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.floors import floors_of
from boundcalc.engine.growth import Growth, growth
from boundcalc.engine.solve import solve as solve_for
from boundcalc.statements.strategies import STRATEGIES, stored_weights
from boundcalc.theorems import POLICIES, known_bound

if TYPE_CHECKING:
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
    """The answer to one question."""

    question: Question
    bounds: tuple[BoundValue, ...]
    floors: Mapping[Quantity, Floor]
    needed: tuple[Needed, ...] = ()
    why: tuple[Why, ...] | None = None

    def best(self, quantity: Quantity = "gap") -> BoundValue | None:
        """The smallest bound of a quantity among those that are proved."""
        proved = [value for value in self.bounds if value.refusal is None and value.kind != "proxy"]
        proved = [value for value in proved if quantity == "gap" or value.risk_refusal is None]
        return min(proved, key=lambda value: value.of(quantity).log_value, default=None)

    @property
    def weights(self) -> int:
        """How many weights are stored."""
        return sum(stored_weights(self.question.setting).values())

    def _result(self, value: BoundValue) -> dict[str, Any]:
        """The result object of the schema."""
        rates = {"T": growth_of(value, "T"), "m": growth_of(value, "m")}
        growths = {
            variable: None if g is None else {"text": str(g), "exponent": g.exponent, "log_exponent": g.log_exponent}
            for variable, g in rates.items()
        }
        below: dict[str, Any] = {}
        for quantity, floor in self.floors.items():
            if value.kind == "bound" and value.refusal is None and (quantity == "gap" or value.risk_refusal is None):
                prefix = "" if quantity == "gap" else "risk_"
                construction = write(floor.construction, complete=True)
                shown = {"value": floor.value, "of": floor.of, "by": floor.by, "construction": construction}
                below |= {f"{prefix}floor": shown, f"{prefix}ratio": value.ratio_to(floor, quantity)}
        return {**value.to_json(), **below, "growth": growths}

    def to_json(self) -> dict[str, Any]:
        """The document of the schema."""
        out: dict[str, Any] = {
            "setting": self.question.setting.complete_json(),
            "assumed": defaults_in(self.question),
            "results": [self._result(value) for value in self.bounds],
        }
        if self.needed:
            out["smallest_m"] = {
                n.quantity: {"target": TARGET, "bound": n.bound, "m": n.m, "reason": n.why_not or None}
                for n in self.needed
            }
        if self.why is not None and (best := self.best()) is not None:
            out["why"] = {"bound": best.name} | {why.quantity: why.to_json() for why in self.why}
        if (bits := self.question.setting.architecture.bits) is not None:
            out["stored_weights"] = {"weights": self.weights, "bits": bits}
        return out


def ask(question: Question, bounds: Sequence[str], *, solve: bool, why: bool = False) -> Report:
    """Evaluates the bounds (all, when none is named); with `solve` the smallest m, with `why` the account."""
    evaluator = Evaluator(question.setting)
    values = tuple(map(evaluator.value, map(known_bound, bounds or POLICIES)))
    quantities: tuple[Quantity, ...] = ("gap", "risk") if any(value.kind == "bound" for value in values) else ()
    report = Report(question, values, floors_of(question.setting, quantities))
    best = report.best()
    if best is not None and why:
        from boundcalc.engine.why import why as account

        report = report._replace(why=tuple(account(best, evaluator)))
    if best is not None and solve:
        needed = tuple(_need(question, best.name, quantity, evaluator) for quantity in ("gap", "risk"))
        report = report._replace(needed=needed)
    return report


def counts_stored(value: BoundValue) -> bool:
    """Whether the gap or the risk is based on how many bits a weight has (G13)."""
    return any(STRATEGIES[proof.certificate.strategy].stored for proof in value.proofs)


def growth_of(value: BoundValue, variable: Literal["T", "m"]) -> Growth | None:
    """How the bound of the gap grows; None where it has no number."""
    return None if value.refusal is not None or value.trivial else growth(value.of("gap"), variable)


def _need(question: Question, bound: str, quantity: Any, evaluator: Evaluator) -> Needed:
    try:
        options: Any = {"bound": bound, "quantity": quantity, "evaluator": evaluator, "alone": True}
        return Needed(quantity, bound, round(solve_for(question.setting, "m", TARGET, **options).value))
    except NoSolution as error:
        return Needed(quantity, bound, None, str(error))
