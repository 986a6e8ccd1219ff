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
from boundcalc.base.table import as_text
from boundcalc.checkpoints.audit import Audit
from boundcalc.checkpoints.parity import Parity
from boundcalc.engine.bound import BoundValue
from boundcalc.lab._outputs import Outputs
from boundcalc.predictors.certificate import PredictorCertificate
from boundcalc.predictors.scores import Score
from boundcalc.setting import Setting

_WIDE = 120
"""Columns of the table on a terminal, where it can be so narrow."""
_UNMET = "examples that the model has not met (test=, --test)"


@dataclass(frozen=True)
class Line:
    """One certificate, or why there is none.

    Attributes:
        method: how it was come by.
        risk: a bound of the probability of a wrong answer; None where the line has none.
        gap: of norm bounds, a bound of that less the share of training margins at most gamma.
        based_on: the statement, and what it was given.
        certifies: which predictor it is about.
        refusal: why there is nothing.
        quantity: what is bounded, in a word.
        trivial: which of risk and gap have a proof that is about no network.
    """

    method: str
    risk: float | None = None
    gap: float | None = None
    based_on: str = ""
    certifies: str = ""
    refusal: str | None = None
    quantity: str = "Error"
    trivial: tuple[str, ...] = ()

    def cell(self, quantity: str) -> str:
        """The risk or the gap as it is shown, rounded up."""
        value = getattr(self, quantity)
        if quantity in self.trivial:
            return "trivial"
        if value is None:
            return "" if quantity == "gap" else "-"
        return "1" if float(shown := up(value, 4)) >= 1 else shown

    def to_json(self) -> dict[str, Any]:
        """One of the `lines` of a document."""
        names = ("method", "risk", "gap", "based_on", "certifies", "refusal")
        return {name: getattr(self, name) for name in names} | {"trivial": list(self.trivial)}


@dataclass(frozen=True)
class Certification:
    """Every certificate of a trained model that applies, each by itself with probability at least 1 - delta.

    Attributes:
        model: what was certified.
        lines: the table.
        delta: failure probability of each line.
        setting: the architecture, its norms and the sample of the norm bounds; None where the model is not described.
        bounds: the norm bounds, with their checked certificates.
        certificates: of the predictor, by method.
        scores: of test examples, by what they are of: "error" (or "loss"), "difference".
        errors: wrong answers among the training sequences, and how many these are; None where none were given.
        notes: what else must be said.
        states: the weights of certified predictors that are not the trained network, by method.
        outputs: what answers; certificates are established again with it (held-out) or `GivenNetwork.of` it (occam).
    """

    model: str
    lines: tuple[Line, ...]
    delta: float
    setting: Setting | None = None
    bounds: tuple[BoundValue, ...] = ()
    certificates: Mapping[str, PredictorCertificate] = field(default_factory=dict[str, PredictorCertificate])
    scores: Mapping[str, Score] = field(default_factory=dict[str, Score])
    errors: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]], repr=False)
    outputs: Outputs | None = field(default=None, repr=False)

    @property
    def audit(self) -> Audit | None:
        """Norms, and where every tensor went; None where the model is not described."""
        return None if self.outputs is None else self.outputs.audit

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
        proved = [(line.risk, place) for place, line in enumerate(self.lines) if line.risk is not None]
        risk, place = min(proved, default=(1.0, 0))
        if risk >= 1:
            tested = any(line.method == "held-out" and line.refusal is None for line in self.lines)
            why = "too many errors for so few examples" if tested else f"give {_UNMET}"
            return f"Nothing below an error of 1 is proved of {self.model}: {why}."
        best, others = (
            self.lines[place],
            sum(line.refusal is None and line.quantity != "Difference" for line in self.lines) - 1,
        )
        less = f"; 0 of {others} other methods give less" if others else ""
        limit, sure = percent(risk, 3, by=up), f"with probability {confidence(self.delta)}"
        return f"{best.quantity} of {self.model} at most {limit} {sure}, by {best.method} ({best.based_on}){less}."

    @property
    def details(self) -> tuple[str, ...]:
        """What the table is about."""
        lines, margins = list[str](), ""
        if self.audit is not None and self.setting is not None:
            account, sample = self.audit.account, self.setting.sample
            lines = [
                f"{self.model}: family {self.audit.family}, {account.total:,} parameters, {account.used:,} of them "
                f"bounded; T {self.setting.architecture.seq_len}, gamma {short(sample.margin)}",
                self.audit.comparison,
            ]
            margins = f"; {short(sample.train_error)} of them have margins at most {short(sample.margin)}"
        if self.errors is not None:
            lines.append("{} of {} training examples are answered wrongly".format(*self.errors) + margins)
        return (*lines, *self.notes)

    @property
    def next_step(self) -> str:
        """What to do for a smaller number."""
        score = self.scores.get("error")
        if score is None:
            return f"Next: give {_UNMET}."
        if score.kind != "error":
            return "Next: with four times as many test examples the limit lies about half as far above the mean."
        if score.value == 0:
            return "Next: with twice as many test examples and no error the limit halves."
        rate, target = near(score.value, 3), near((score.value + score.upper) / 2, 3)
        return (
            f"Next: for a limit half as far above the {rate} that was seen, plan with boundcalc solve --for n "
            f"--certify held-out --truth {rate} --target {target}."
        )

    @property
    def table(self) -> list[tuple[str, ...]]:
        """Headings and rows, as text; values are rounded up. Methods that one reason keeps out share a row."""
        rows = [("method", "risk <=", "gap <=", "certifies", "based on")]
        rows += [
            (line.method, line.cell("risk"), line.cell("gap"), line.certifies, line.based_on)
            for line in self.lines
            if line.refusal is None
        ]
        for refusal in dict.fromkeys(line.refusal for line in self.lines if line.refusal is not None):
            alike = ", ".join(line.method for line in self.lines if line.refusal == refusal)
            rows.append((alike, "-", "-", "", refusal))
        return rows

    def text(self, width: int = _WIDE) -> str:
        """For a terminal of such a width: the verdict, the table, and how to read it."""
        foot = (
            f"Each line holds by itself with probability at least {confidence(self.delta)}, for independent examples; "
            "choosing the smallest afterwards is not covered (delta divided by the number of lines is). Values are "
            "rounded up."
        )
        words = [*self.details, foot, self.next_step]
        wrapped = [part for word in words for part in textwrap.wrap(word, width, subsequent_indent="  ")]
        return "\n".join([*textwrap.wrap(self.verdict, width), "", as_text(self.table, width, 3), "", *wrapped])

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
    parts = {"gap": value.of("gap")} | ({"risk": value.of("risk")} if value.risk_refusal is None else {})
    numbers = {name: part.value for name, part in parts.items() if not part.trivial}
    rests = [f"risk by {parts[name].form}" if name == "risk" else parts[name].form for name in numbers]
    rests += [f"no risk bound: {value.risk_refusal}"] if value.risk_refusal is not None else []
    trivial = tuple(name for name in parts if name not in numbers)
    rests += ["trivial: every covering argument gives a bound above 1 at this m"] if trivial else []
    based_on = "; ".join(["norms, corrected for having been measured (P1)", *rests])
    return Line(method, numbers.get("risk"), numbers.get("gap"), based_on, "the trained network", trivial=trivial)


def of_score(method: str, score: Score) -> Line:
    """The line of a score; of two predictors, which is better."""
    low, high = score.interval
    interval, facts = f"{percent(low, 3, by=down)} to {percent(high, 3, by=up)}", score.facts
    if score.compares:
        words = "{first} errors of the first alone, {second} of the second alone, "
        alone = words.format(**facts) if "first" in facts else ""
        test = "" if score.p_value is None else f", exact paired test p = {up(score.p_value, 3)}"
        based_on = f"{score.statement}: {alone}{score.n} examples: the first errs more often by {interval}{test}"
        better = "the second is better" if low > 0 else "the first is better" if high < 0 else "which is better is open"
        return Line(method, None, None, based_on, better, quantity="Difference")
    weighted, quantity = "weighted " * ("weights" in facts), "error"
    if score.kind == "error":
        seen = f"{_errors(facts['errors'])} of {score.n}"
    else:
        groups = " groups" * (score.evidence.get("groups") is not None)
        seen = f"{weighted}mean {near(score.value, 3)} of {score.n}{groups}"
        quantity = "error" if weighted and set(facts["losses"]) <= {0, 1} else "mean loss"
    looks = f", 1 of {score.looks} looks" if score.looks > 1 else ""
    based_on = f"{score.statement}: {seen}{looks}; two-sided {interval}"
    return Line(method, score.upper, None, based_on, "the predictor", quantity=f"{weighted}{quantity}".capitalize())


def _errors(count: int) -> str:
    return f"{count} error{'s' * (count != 1)}"


def of_predictor(method: str, certificate: PredictorCertificate) -> Line:
    """The line of a certificate of one predictor."""
    facts, certifies = certificate.summary(), certificate.certified
    if "bits" in facts and certificate.risk >= 1:
        said = "no description is short enough"
        return Line(method, certificate.risk, None, f"{certificate.statement}: {said}", certifies)
    cost = f"{facts['picks']} picks, " if "picks" in facts else ""
    if "bits" in facts:
        reference = getattr(certificate.alternative, "reference", None)
        relative = reference is not None and reference.checkpoint is not None
        start = f" from {certificate.evidence.recipe['reference']} on" if relative else ""
        cost += f"{math.ceil(facts['bits']):,} bits{start}, "
    based_on = f"{certificate.statement}: {cost}{_errors(facts['errors'])} of {facts['n']}"
    return Line(method, certificate.risk, None, based_on, "the trained network" if method == "held-out" else certifies)
