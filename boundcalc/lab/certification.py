"""What `certify` found: a line for every certificate, and all of them together."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boundcalc.base.output import make_folder
from boundcalc.base.rounding import confidence, down, near, percent, short, up
from boundcalc.base.table import fitted, folded
from boundcalc.base.value import Value
from boundcalc.checkpoints.audit import Audit
from boundcalc.checkpoints.parity import Parity
from boundcalc.engine.bound import BoundValue
from boundcalc.lab.outputs import Outputs
from boundcalc.predictors.certificate import PredictorCertificate
from boundcalc.predictors.scores import Score
from boundcalc.setting import Setting

_WIDE = 120
"""Columns of the table on a terminal, where it can be so narrow."""


@dataclass(frozen=True)
class Line:
    """One certificate, or why there is none.

    Attributes:
        method: how it was come by.
        values: what it bounds: the probability of a wrong answer, and (of norm bounds) the gap of that and the share of
            training margins at most gamma.
        quantity: what is bounded, in a word.
        based_on: the statement, and what it was given.
        certifies: which predictor it is about.
        refusal: why there is nothing.
    """

    method: str
    values: tuple[Value, ...] = ()
    based_on: str = ""
    certifies: str = ""
    refusal: str | None = None
    quantity: str = "Error"

    def of(self, quantity: str) -> Value | None:
        """Its bound of the risk or of the gap."""
        return next((value for value in self.values if value.quantity == quantity), None)

    @property
    def risk(self) -> float | None:
        """The bound of the risk; None where the line has none."""
        return self._number("risk")

    @property
    def gap(self) -> float | None:
        """The bound of the gap; None where the line has none."""
        return self._number("gap")

    def _number(self, quantity: str) -> float | None:
        value = self.of(quantity)
        return None if value is None or value.trivial else value.value

    def cell(self, quantity: str) -> str:
        """The risk or the gap as it is shown, rounded up."""
        value = self.of(quantity)
        if value is None:
            return "" if quantity == "gap" else "-"
        if value.trivial:
            return "trivial"
        return "1" if float(shown := up(value.value, 4)) >= 1 else shown

    def to_json(self) -> dict[str, Any]:
        """One of the `lines` of a document."""
        trivial = [value.quantity for value in self.values if value.trivial]
        return {
            "method": self.method,
            "risk": self.risk,
            "gap": self.gap,
            "based_on": self.based_on,
            "certifies": self.certifies,
            "refusal": self.refusal,
            "trivial": trivial,
        }


@dataclass(frozen=True)
class Certification:
    """Every certificate of a trained model that applies, each by itself with probability at least 1 - delta.

    Attributes:
        model: what was certified.
        lines: the table.
        delta: failure probability of each line.
        audit: norms, and where every tensor went; None where the model is not described.
        setting: the architecture, its norms and the sample of the norm bounds, likewise.
        bounds: the norm bounds, with their checked certificates.
        certificates: of the predictor, by method.
        scores: of test examples, by what they are of: "error" (or "loss"), "difference".
        errors: wrong answers among the training sequences, and how many these are; None where none were given.
        notes: what else must be said.
        mapping: how the model was described, where no family was known for it.
        states: the weights of certified predictors that are not the trained network, by method.
        outputs: what answers; certificates are established again with it (held-out) or `GivenNetwork.of` it (occam).
    """

    model: str
    lines: tuple[Line, ...]
    delta: float
    audit: Audit | None = None
    setting: Setting | None = None
    bounds: tuple[BoundValue, ...] = ()
    certificates: Mapping[str, PredictorCertificate] = field(default_factory=dict[str, PredictorCertificate])
    scores: Mapping[str, Score] = field(default_factory=dict[str, Score])
    errors: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    mapping: Mapping[str, Any] | None = field(default=None, repr=False)
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]], repr=False)
    outputs: Outputs | None = field(default=None, repr=False)

    @property
    def parity(self) -> Parity | None:
        """The forward check; None where no module was at hand."""
        return None if self.audit is None else self.audit.parity

    def save(self, folder: str | Path, *, force: bool = False) -> list[Path]:
        """Write every certificate into a folder; `boundcalc verify` reads each. A refused line has none."""
        place = make_folder(folder)
        written: list[Path] = []
        for value in self.bounds:
            for proof in value.proofs:
                if not proof.trivial:
                    written.append(place / f"norms-{value.name}-{proof.certificate.quantity}.json")
                    proof.certificate.save(written[-1], force=force)
        for method, certificate in (*self.certificates.items(), *self.scores.items()):
            written.append(place / f"{method}.json")
            certificate.save(written[-1], force=force)
        return written

    def __getitem__(self, method: str) -> Line:
        """The line of a method."""
        return next(line for line in self.lines if line.method == method)

    @property
    def verdict(self) -> str:
        """The best that is proved, in one sentence."""
        risks = [(line.risk, line) for line in self.lines if line.risk is not None]
        sure = f"with probability {confidence(self.delta)}"
        risk, best = min(risks, key=lambda pair: pair[0], default=(1.0, None))
        if best is None or risk >= 1:
            return f"Nothing below an error of 1 is proved of {self.model}: {self._why_nothing}"
        others = sum(line is not best and bool(line.values) for line in self.lines)
        less = f"; 0 of {others} other methods give less" if others else ""
        limit = percent(risk, 3, by=up)
        return f"{best.quantity} of {self.model} at most {limit} {sure}, by {best.method} ({best.based_on}){less}."

    @property
    def _why_nothing(self) -> str:
        tested = "held-out" in {line.method for line in self.lines if line.refusal is None}
        return (
            "too many errors for so few examples." if tested else "give examples that it has not met (test=, --test)."
        )

    @property
    def details(self) -> tuple[str, ...]:
        """What the table is about."""
        lines: list[str] = []
        if self.audit is not None and self.setting is not None:
            account, gamma = self.audit.account, self.setting.sample.margin
            lines.append(
                f"{self.model}: family {self.audit.family}, {account.total:,} parameters, {account.used:,} of them "
                f"bounded; T {self.setting.architecture.seq_len}, gamma {short(gamma)}"
            )
            lines.append(self.audit.comparison)
        if self.errors is not None:
            wrong, n = self.errors
            margins = ""
            if self.setting is not None:
                sample = self.setting.sample
                margins = f"; {short(sample.train_error)} of them have margins at most {short(sample.margin)}"
            lines.append(f"{wrong} of {n} training examples are answered wrongly{margins}")
        return (*lines, *self.notes)

    @property
    def next_step(self) -> str:
        """What to do for a smaller number."""
        score = self.scores.get("error")
        if score is None:
            return "" if self.scores else "Next: give examples that the model has not met (test=, --test)."
        if score.kind != "error":
            return (
                "Next: with four times as many test examples the limit lies about half as far above the observed error."
            )
        if score.value == 0:
            return "Next: with twice as many test examples and no error the limit halves."
        rate, target = near(score.value, 3), near(score.value + (score.upper - score.value) / 2, 3)
        return (
            f"Next: for a limit half as far above the {rate} that was seen, plan with boundcalc solve --for n "
            f"--certify held-out --truth {rate} --target {target}."
        )

    @property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """Headings and rows, as text; values are rounded up. Methods that one reason keeps out share a row."""
        rows = [("method", "risk <=", "gap <=", "certifies", "based on")]
        alike: dict[str, list[str]] = {}
        for line in self.lines:
            if line.refusal is not None:
                alike.setdefault(line.refusal, []).append(line.method)
        for line in self.lines:
            if line.refusal is not None:
                if methods := alike.pop(line.refusal, None):
                    rows.append((", ".join(methods), "-", "-", "", line.refusal))
                continue
            rows.append((line.method, line.cell("risk"), line.cell("gap"), line.certifies, line.based_on))
        return tuple(rows)

    def text(self, width: int = _WIDE) -> str:
        """For a terminal of such a width: the verdict, the table, and how to read it."""
        rows = self.table
        widths = fitted(rows, width)
        lines = [line for row in rows for line in folded(row, widths)]
        lines.insert(1, "-" * max(map(len, lines)))
        words = [*self.details, self.foot, *filter(None, [self.next_step])]
        wrapped = [part for word in words for part in textwrap.wrap(word, width, subsequent_indent="  ")]
        return "\n".join([*textwrap.wrap(self.verdict, width), "", *lines, "", *wrapped])

    @property
    def foot(self) -> str:
        """How the lines are to be read together."""
        return (
            f"Each line holds by itself with probability at least {confidence(self.delta)}, for independent examples; "
            "choosing the smallest afterwards is not covered (delta divided by the number of lines is). Values are "
            "rounded up."
        )

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "model": self.model,
            "delta": self.delta,
            "verdict": self.verdict,
            "forward_check": None if self.audit is None else self.audit.to_json()["forward_check"],
            "training": None if self.errors is None else {"errors": self.errors[0], "n": self.errors[1]},
            "margin": None if self.setting is None else self.setting.sample.margin,
            "scores": {name: score.to_json() for name, score in self.scores.items()},
            "lines": [line.to_json() for line in self.lines],
            "bounds": [value.to_json() for value in self.bounds],
            "notes": list(self.notes),
        }


def of_bound(value: BoundValue) -> Line:
    """The line of a norm bound."""
    method = f"norms: {value.name}"
    if value.refusal is not None:
        return Line(method, refusal=str(value.refusal))
    values = [value.of("gap")] + ([value.of("risk")] if value.risk_refusal is None else [])
    rests = [f"risk by {part.form}" if part.quantity == "risk" else part.form for part in values if not part.trivial]
    if value.risk_refusal is not None:
        rests.append(f"no risk bound: {value.risk_refusal}")
    if any(part.trivial for part in values):
        rests.append("trivial: every covering argument gives a bound above 1 at this m")
    return Line(
        method,
        tuple(values),
        "; ".join(["norms, corrected for having been measured (P1)", *rests]),
        "the trained network",
    )


def of_score(method: str, score: Score) -> Line:
    """The line of a score; of two predictors, which is better."""
    low, high = score.interval
    interval, facts = f"{percent(low, 3, by=down)} to {percent(high, 3, by=up)}", score.facts
    if score.compares:
        seen = ""
        if "first" in facts:
            seen = f"{facts['first']} errors of the first alone, {facts['second']} of the second alone, "
        test = "" if score.p_value is None else f", exact paired test p = {up(score.p_value, 3)}"
        based_on = f"{score.statement}: {seen}{score.n} examples: the first errs more often by {interval}{test}"
        better = "the second is better" if low > 0 else "the first is better" if high < 0 else "which is better is open"
        return Line(method, (), based_on, better, quantity="Difference")
    value = Value.of(score.statement, "risk", "bound", score.upper, method, always=1.0, proof=score)
    weighted, quantity = "weights" in facts, "error"
    if score.kind == "error":
        seen = f"{_errors(facts['errors'])} of {score.n}"
    else:
        groups = " groups" * (score.evidence.get("groups") is not None)
        seen = f"{'weighted ' * weighted}mean {near(score.value, 3)} of {score.n}{groups}"
        quantity = "error" if weighted and set(facts["losses"]) <= {0, 1} else "mean loss"
    looks = f", 1 of {score.looks} looks" if score.looks > 1 else ""
    quantity = f"{'weighted ' * weighted}{quantity}".capitalize()
    based_on = f"{score.statement}: {seen}{looks}; two-sided {interval}"
    return Line(method, (value,), based_on, "the predictor", quantity=quantity)


def _errors(count: int) -> str:
    return f"{count} error{'s' * (count != 1)}"


def of_predictor(method: str, certificate: PredictorCertificate) -> Line:
    """The line of a certificate of one predictor."""
    facts = certificate.summary()
    if "bits" in facts and certificate.risk >= 1:
        return Line(
            method,
            (certificate.bound,),
            f"{certificate.statement}: no description is short enough",
            certificate.certified,
        )
    cost = f"{facts['picks']} picks, " if "picks" in facts else ""
    cost += f"{math.ceil(facts['bits']):,} bits{_start(certificate)}, " if "bits" in facts else ""
    return Line(
        method,
        (certificate.bound,),
        f"{certificate.statement}: {cost}{_errors(facts['errors'])} of {facts['n']}",
        "the trained network" if method == "held-out" else certificate.certified,
    )


def _start(certificate: PredictorCertificate) -> str:
    """What the bits are relative to, where it is not zeros."""
    relative = certificate.taken.get("reference", {}).get("checkpoint") is not None
    return f" from {certificate.evidence['recipe']['reference']} on" if relative else ""
