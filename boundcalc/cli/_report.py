"""What `boundcalc eval` has to say: the bounds of a setting with floors, the smallest m and the account; text, JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from flint import arb

from boundcalc.base.errors import NoSolution
from boundcalc.base.intervals import upper_log
from boundcalc.base.rounding import at_least, down, near, percent, short, up, upper
from boundcalc.base.schema import write
from boundcalc.base.value import VACUOUS_MARGIN
from boundcalc.cli._setting import Question, defaults_in, setting_lines
from boundcalc.cli._text import say, write_table
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.floors import floors_of
from boundcalc.engine.growth import Growth, growth, value_of
from boundcalc.engine.solve import solve as solve_for
from boundcalc.statements.strategies import STRATEGIES, Quantity, stored_weights
from boundcalc.theorems import POLICIES, known_bound

if TYPE_CHECKING:
    from boundcalc.engine.why import Change, Why
    from boundcalc.proof.floor import Floor
    from boundcalc.setting import Setting

_TARGET = 0.1
_LN10 = math.log(10)
_MOST_NAMED = 6
"""Pieces that are named in the account."""


class Report(NamedTuple):
    """The answer to one question: its bounds, the floors under them, the smallest m of each quantity or why none."""

    question: Question
    bounds: tuple[BoundValue, ...]
    floors: Mapping[Quantity, Floor]
    needed: Mapping[Quantity, int | str] = {}
    why: Sequence[Why] | None = None

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
        out = value.to_json()
        for quantity, floor in self.floors.items():
            if value.kind == "bound" and value.refusal is None and (quantity == "gap" or value.risk_refusal is None):
                prefix = "" if quantity == "gap" else "risk_"
                construction = write(floor.construction, complete=True)
                shown = {"value": floor.value, "of": floor.of, "by": floor.by, "construction": construction}
                out |= {f"{prefix}floor": shown, f"{prefix}ratio": value.ratio_to(floor, quantity)}
        growths: dict[str, Any] = {"T": _growth(value, "T"), "m": _growth(value, "m")}
        for name, rate in growths.items():
            growths[name] = rate and {"text": str(rate), "exponent": rate[1], "log_exponent": rate[2]}
        return out | {"growth": growths}

    def to_json(self) -> dict[str, Any]:
        """The document of the schema."""
        setting, best = self.question.setting, self.best()
        out: dict[str, Any] = {
            "setting": setting.complete_json(),
            "assumed": defaults_in(self.question),
            "results": [self._result(value) for value in self.bounds],
        }
        if best is not None and self.needed:
            out["smallest_m"] = {
                quantity: {"target": _TARGET, "bound": best.name}
                | ({"m": None, "reason": m} if isinstance(m, str) else {"m": m, "reason": None})
                for quantity, m in self.needed.items()
            }
        if best is not None and self.why is not None:
            out["why"] = {"bound": best.name} | {why.quantity: why.to_json() for why in self.why}
        if (bits := setting.architecture.bits) is not None:
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

        report = report._replace(why=account(best, evaluator))
    if best is None or not solve:
        return report
    needed: dict[Quantity, int | str] = {}
    for quantity in ("gap", "risk"):
        options: Any = {"bound": best.name, "quantity": quantity, "evaluator": evaluator, "alone": True}
        try:
            needed[quantity] = round(solve_for(question.setting, "m", _TARGET, **options).value)
        except NoSolution as error:
            needed[quantity] = str(error)
    return report._replace(needed=needed)


def counts_stored(value: BoundValue) -> bool:
    """Whether the gap or the risk is based on how many bits a weight has (G13)."""
    return any(STRATEGIES[proof.certificate.strategy].stored for proof in value.proofs)


def _growth(value: BoundValue, variable: Literal["T", "m"]) -> Growth | None:
    """How the bound of the gap grows; None where it has no number."""
    return None if value.refusal is not None or value.trivial else growth(value.of("gap"), variable)


# -- as text: the verdict, the table, what must be said below, the setting

NO_MEMBER = "-"
"""Shown in place of a risk bound whose premise no known network meets."""
_VACUOUS = "vacuous"
"""Shown in place of a bound that is 1 or more, with the uncapped value where there is one."""


def cell(result: Mapping[str, Any], quantity: Quantity) -> str:
    """A bound in a table, of its result object: "vacuous" from 0.999 on, next to the uncapped value; proxies with ~."""
    if result.get("refusal") or (quantity == "risk" and result.get("risk_refusal")):
        return NO_MEMBER
    log10, mark = result[f"log10_{quantity}"], "~" * (result["kind"] == "proxy")
    if log10 is not None and log10 < math.log10(math.exp(-VACUOUS_MARGIN)):
        return mark + upper(log10)
    return mark + _VACUOUS + ("" if log10 is None or log10 <= 1e-9 else f" ({upper(log10)})")


def show(report: Report) -> None:
    """Print a report."""
    enough = {name: m for name, m in report.needed.items() if isinstance(m, int)}
    sizes = [f"{name} <= {short(_TARGET)} from m = {at_least(m)} on" for name, m in enough.items()]
    head = [_verdict(report, "gap"), _verdict(report, "risk"), f"Enough  {', '.join(sizes)}" * bool(sizes)]
    say("\n".join(filter(None, head)) + "\n")
    _table(report)
    say("\n".join(["", *_notes(report), "", *setting_lines(report.question)]))
    best = report.best()
    if report.why is not None and best is not None:
        if not report.why:
            say(f"\nwhy: {best.name!r} is a closed formula; boundcalc derive --bound {best.name} shows it.")
        for account in report.why:
            say("\n".join(["", *_account(best, account, report.question.setting)]))


def _table(report: Report) -> None:
    """A row for each bound; kinds are shown where they differ from "bound"."""
    kinds, best = any(value.kind != "bound" for value in report.bounds), report.best()
    rows = [["bound", *["kind"] * kinds, "gap <=", "risk <=", "strategy", "growth in T"]]
    styles: list[str] = []
    for value in report.bounds:
        refused, result = value.refusal is not None, value.to_json()
        kind = ["refused" if refused else value.kind.replace("_", " ")] * kinds
        more = () if refused or value.trivial else (value.strategy, str(_growth(value, "T") or "?"))
        rows.append([value.name, *kind, cell(result, "gap"), cell(result, "risk"), *more])
        styles.append("bold" if value is best else "dim" * (refused or value.vacuous))
    write_table(rows, styles=styles)


def _verdict(report: Report, quantity: Quantity) -> str:
    """One quantity: its best bound, and the floor under it."""
    sample, best = report.question.setting.sample, report.best(quantity)
    name = f"{quantity.capitalize():7}"
    if best is None:
        return "" if quantity == "gap" else f"{name} no bound (see below)"
    bound, floor = best.of(quantity), report.floors.get(quantity) if best.kind == "bound" else None
    at = ""
    if quantity == "risk" and sample.lipschitz is None:
        default = ", the default" if report.question.assumed("train_error") else ""
        at = f" at train error {short(sample.train_error)}{default}"
    least = "" if floor is None else f"; no such bound is below {down(floor.value)} (floor)"
    if bound.vacuous:
        return f"{name} {_VACUOUS}: the best bound{at} is 1 or more{least}"
    ratio = best.ratio_to(floor, quantity) if floor is not None else None
    far = "" if ratio is None else f", at most {up(ratio, 2)} times from optimal"
    return f"{name} at most {upper(bound.log10)}{at}, by {best.name!r}{least}{far}"


def _notes(report: Report) -> Iterator[str]:
    """What must be said below the table."""
    sample, bits = report.question.setting.sample, report.question.setting.architecture.bits
    refusals = dict.fromkeys(str(value.risk_refusal) for value in report.bounds if value.risk_refusal is not None)
    if sample.lipschitz is not None:
        yield (
            f"The loss is any with values in [0, 1] and Lipschitz constant {short(sample.lipschitz)}; no margin is "
            "meant. Risk is its expectation where the training loss is 0: the gap bound."
        )
    else:
        risk = (
            f"Risk: chance of an error, at train error {short(sample.train_error)}. Each floor is of the same quantity."
        )
        for text in [f"No risk bound: {refusal}" for refusal in refusals] or [risk]:
            yield f"Gap: expected ramp loss less its mean on the sample, for every training error. {text}"
    for value in report.bounds:
        if value.refusal is not None:
            yield f"{value.name} refused: {value.refusal}"
    if any(value.kind == "proxy" for value in report.bounds):
        yield "~ marks proxies: numbers that lack constants or the union bound over what was tried, not bounds."
    if bits is not None:
        names = ", ".join(repr(value.name) for value in report.bounds if counts_stored(value))
        premise = f"each of the {short(report.weights)} stored weights is a number of {bits} bits, and that was fixed"
        based = f"{names} is based on a premise:" if names else "No bound here gains from the premise that"
        yield f"{based} {premise} before the data (G13); leave out --bits for the bound without it."
    for quantity, m in report.needed.items():
        if isinstance(m, str) and m not in refusals:
            yield f"No m is known to give {quantity} <= {short(_TARGET)}: {m.rstrip('.')}."


# -- what the best bound is made of


def _account(best: BoundValue, account: Why, setting: Setting) -> Iterator[str]:
    """Why the best bound of a quantity is what it is, and which change helps most."""
    what, strategy = account.quantity, account.strategy
    count, m = STRATEGIES[strategy].counted, short(account.n_train)
    head = f"Why the {what} of {best.name!r}"
    if account.first_link:
        head += " is trivial; its first link, whose cost exceeds its gain"
    if account.counts:
        yield f"{head}: {strategy}, {count} = {upper(account.log_count / _LN10)} against m = {m}."
        pieces = [f"{part.key} {percent(part.share)}" for part in account.counts[:_MOST_NAMED] if part.share > 0]
        if more := [part.share for part in account.counts[_MOST_NAMED:]]:
            pieces.append(f"{len(more)} other{'s' * (len(more) > 1)} {percent(sum(more))}")
        yield f"  {count} by piece: {', '.join(pieces)}"
    else:
        yield f"{head}: {strategy}, which counts no covers, at m = {m}."
    if not account.first_link:
        proof = best.of(what).breakdown
        yield f"  {proof.formula}, where"
        for term in proof.terms:
            yield f"    {term.formula} = {_number(term.value)}" + f" [{term.statement}]" * bool(term.statement)
        yield f"  by {' '.join(dict.fromkeys(proof.statements))} (boundcalc explain NAME shows each)"
    yield f"  d log({f'{count} / m' if account.saturates else what}) / d log: {_slopes(account.elasticities)}"
    aim = "halve it" if account.halves else "bring it below 1"
    if account.changes:
        changes = "; or ".join(_change(change, what, setting) for change in account.changes)
        yield f"  One change that would {aim}: {changes}"
    else:
        yield f"  No single change that was tried would {aim} while some network still has the margin."


def _number(x: arb) -> str:
    log = upper_log(x)
    return "1" if -1e-9 < log <= 0 else upper(log / _LN10)


def _slopes(slopes: Mapping[str, float]) -> str:
    """Slopes in sizes, then those in kinds of norm, the largest first."""
    texts = {name: near(slope, 2) if abs(slope) >= 0.005 else "0" for name, slope in slopes.items()}
    norms = sorted((name for name in slopes if name.startswith("norm ")), key=lambda name: -abs(slopes[name]))
    kinds = [f"{name.removeprefix('norm ')} {texts[name]}" for name in norms if texts[name] != "0"]
    if idle := len(norms) - len(kinds):
        kinds.append(f"{idle} other kinds 0")
    sizes = (f"{name} {text}" for name, text in texts.items() if name not in norms)
    return f"{', '.join(sizes)}; norm of {', '.join(kinds)}"


def _change(change: Change, what: str, setting: Setting) -> str:
    bound = upper(change.log_bound / _LN10)
    if change.value is None:
        return f"{change.what} times {near(change.factor, 3)} ({what} <= {bound})"
    before = value_of(setting, change.what) or 0.0
    return f"{change.what} {short(change.value)} for {short(before)} ({what} <= {bound})"
