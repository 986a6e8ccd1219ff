"""What `certify` found: a line for every certificate, and all of them together."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boundcalc.base.output import make_folder
from boundcalc.base.rounding import confidence, up
from boundcalc.base.value import Value
from boundcalc.checkpoints.audit import Audit
from boundcalc.checkpoints.parity import Parity
from boundcalc.engine.bound import BoundValue
from boundcalc.lab.outputs import Outputs
from boundcalc.predictors.certificate import PredictorCertificate
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
        rests_on: the statement, and what it was given.
        speaks_of: which predictor it is about.
        refusal: why there is nothing.
    """

    method: str
    values: tuple[Value, ...] = ()
    rests_on: str = ""
    speaks_of: str = ""
    refusal: str | None = None

    def of(self, quantity: str) -> Value | None:
        """Its bound of the risk or of the gap."""
        return next((value for value in self.values if value.quantity == quantity), None)

    @property
    def risk(self) -> float | None:
        """The bound of the risk; None where nothing is said."""
        return self._number("risk")

    @property
    def gap(self) -> float | None:
        """The bound of the gap; None where nothing is said."""
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
            "rests_on": self.rests_on,
            "speaks_of": self.speaks_of,
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
        audit: norms, and where every tensor went.
        setting: the architecture, its norms and the sample of the norm bounds.
        bounds: the norm bounds, with their checked certificates.
        certificates: of the predictor, by method.
        errors: wrong answers among the training sequences, and how many these are.
        notes: what else must be said.
        mapping: how the model was described, where no family was known for it.
        states: the weights of certified predictors that are not the trained network, by method.
        outputs: what answers, for `lab.given.GivenNetwork.of`, which certificates are established again with.
    """

    model: str
    lines: tuple[Line, ...]
    delta: float
    audit: Audit
    setting: Setting
    bounds: tuple[BoundValue, ...]
    certificates: Mapping[str, PredictorCertificate]
    errors: tuple[int, int]
    notes: tuple[str, ...] = ()
    mapping: Mapping[str, Any] | None = field(default=None, repr=False)
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]], repr=False)
    outputs: Outputs | None = field(default=None, repr=False)

    @property
    def parity(self) -> Parity | None:
        """The forward check; None where no module was at hand."""
        return self.audit.parity

    def save(self, folder: str | Path, *, force: bool = False) -> list[Path]:
        """Write every certificate into a folder; `boundcalc verify` reads each. What says nothing has none."""
        place = make_folder(folder)
        written: list[Path] = []
        for value in self.bounds:
            for proof in value.proofs:
                if not proof.trivial:
                    written.append(place / f"norms-{value.name}-{proof.certificate.quantity}.json")
                    proof.certificate.save(written[-1], force=force)
        for method, certificate in self.certificates.items():
            written.append(place / f"{method}.json")
            certificate.save(written[-1], force=force)
        return written

    def __getitem__(self, method: str) -> Line:
        """The line of a method."""
        return next(line for line in self.lines if line.method == method)

    @property
    def head(self) -> tuple[str, ...]:
        """What the table is about."""
        account, (wrong, n) = self.audit.account, self.errors
        rows, gamma = self.setting.architecture.seq_len, self.setting.sample.margin
        return (
            f"{self.model}: family {self.audit.family}, {account.total:,} parameters, {account.used:,} of them bounded; "
            f"T {rows}, gamma {gamma:g}",
            self.audit.comparison,
            f"{wrong} of {n} training sequences are answered wrongly; {self.setting.sample.train_error:g} of them have "
            f"margins at most {self.setting.sample.margin:g}",
            *self.notes,
        )

    @property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """Headings and rows, as text; values are rounded up."""
        rows = [("method", "risk <=", "gap <=", "speaks of", "rests on")]
        for line in self.lines:
            if line.refusal is not None:
                rows.append((line.method, "-", "-", "", line.refusal))
                continue
            rows.append((line.method, line.cell("risk"), line.cell("gap"), line.speaks_of, line.rests_on))
        return tuple(rows)

    @property
    def text(self) -> str:
        """For a terminal."""
        rows = self.table
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines: list[str] = []
        for row in rows:
            start = "".join(row[i].ljust(widths[i] + 3) for i in range(4))
            first, *rest = textwrap.wrap(row[4], max(40, _WIDE - len(start)), break_long_words=False) or [""]
            lines += [(start + first).rstrip(), *(" " * len(start) + more for more in rest)]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([*self.head, "", *lines, "", self.foot])

    @property
    def foot(self) -> str:
        """How the lines are to be read together."""
        return (
            f"Each line holds by itself with probability at least {confidence(self.delta)}; which is smallest was not fixed "
            "before. Values are rounded up; 1 says nothing."
        )

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = ([html.escape(cell) for cell in row] for row in self.table)
        top = "".join(f"<th>{cell}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        said = "".join(f"<p>{html.escape(line)}</p>" for line in (*self.head, self.foot))
        return f"{said}<table><tr>{top}</tr>{body}</table>"

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "model": self.model,
            "delta": self.delta,
            "forward_check": self.audit.to_json()["forward_check"],
            "training": {"errors": self.errors[0], "n": self.errors[1]},
            "margin": self.setting.sample.margin,
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
    rests = [f"risk by {each.form}" if each.quantity == "risk" else each.form for each in values if not each.trivial]
    if value.risk_refusal is not None:
        rests.append(f"no risk bound: {value.risk_refusal}")
    if any(each.trivial for each in values):
        rests.append("trivial: no cover is worth its price at this m")
    return Line(method, tuple(values), "; ".join(["norms, P1 paid", *rests]), "the trained network")


def of_predictor(method: str, certificate: PredictorCertificate) -> Line:
    """The line of a certificate of one predictor."""
    facts = certificate.summary()
    cost = f"{facts['picks']} picks, " if "picks" in facts else ""
    cost += f"{math.ceil(facts['bits']):,} bits{_start(certificate)}, " if "bits" in facts else ""
    return Line(
        method,
        (certificate.bound,),
        f"{certificate.statement}: {cost}{facts['errors']} error{'s' * (facts['errors'] != 1)} of {facts['n']}",
        "the trained network" if method == "held-out" else certificate.certified,
    )


def _start(certificate: PredictorCertificate) -> str:
    """What the bits are relative to, where it is not zeros."""
    relative = certificate.alternatives[certificate.chosen]["checkpoint"] is not None
    return f" from {certificate.evidence['recipe']['reference']} on" if relative else ""
