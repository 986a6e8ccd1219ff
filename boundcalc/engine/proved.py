"""What is proved of a setting: the checked bounds of its gap and risk, alone and side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.numbers import log_add
from boundcalc.base.rounding import log_up, upper, upper_latex
from boundcalc.base.value import Kind, Value
from boundcalc.engine.search import Needed
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import Checked
from boundcalc.setting import Setting
from boundcalc.setting.validate import choice

if TYPE_CHECKING:
    from boundcalc.base.compared import Compared
    from boundcalc.proof.breakdown import Breakdown
    from boundcalc.proof.floor import Floor
    from boundcalc.statements.strategies import Quantity


_VALUE_FIELDS = (
    *("gap", "log10_gap", "risk", "log10_risk", "vacuous", "risk_vacuous", "trivial", "risk_trivial"),
    *("strategy", "risk_strategy", "dominant"),
)
"""What a result says beside its name and kind; null where it is refused or trivial."""


class Proved(NamedTuple):
    """A certificate that passed, with its claims, and what the checker found on the way."""

    certificate: Certificate
    checked: Checked

    @property
    def log_value(self) -> float:
        """Log of the value, uncapped."""
        return self.checked.log_value

    @property
    def pieces(self) -> Mapping[str, float]:
        """Each piece's part of the log counts."""
        return self.checked.shares

    @property
    def breakdown(self) -> Breakdown:
        """The proof taken apart, as it was checked."""
        return self.checked.breakdown

    @property
    def trivial(self) -> bool:
        """Whether the proof covers nothing: its value is how far a loss can vary, not a bound of anything learned."""
        return self.certificate.trivial

    @property
    def dominant(self) -> tuple[str, float] | None:
        """The piece that costs most, and its part of the log counts."""
        if not self.pieces:
            return None
        name = max(self.pieces, key=self.pieces.__getitem__)
        return (name, self.pieces[name]) if self.pieces[name] > 0 else None


@dataclass(frozen=True)
class BoundValue:
    """A checked upper bound of the generalization gap, and of the risk at the assumed training error.

    Attributes:
        name: the policy or theorem.
        kind: "bound", "a_posteriori" (what was looked at is paid for), "proxy" or "estimate".
        setting: what was asked.
        by_gap: the proof of the gap bound.
        by_risk: the proof of the risk bound; where it is a gap proof, the training error is added.
        refusal: why there is no value.
        risk_refusal: why there is no bound of the risk, though there is one of the gap.
        needed: where the gap is trivial, how far a statement is.
    """

    name: str
    kind: Kind
    setting: Setting
    by_gap: Proved | None
    by_risk: Proved | None
    refusal: Refusal | None = field(default=None)
    risk_refusal: Refusal | None = field(default=None)
    needed: Needed | None = field(default=None)

    def of(self, quantity: str) -> Value:
        """The bound of the gap, or of the risk at the assumed training error, by itself.

        Args:
            quantity: "gap" or "risk".

        Returns:
            The value with its kind, the theorem of G that gives it, and its proof.

        Raises:
            Unsupported: where there is none.
        """
        choice("quantity", quantity, ("gap", "risk"))
        proof = self._gap if quantity == "gap" else self._risk
        log, form = proof.log_value, proof.certificate.strategy
        whole = proof.certificate.quantity == quantity
        q = self.setting.sample.train_error
        if not whole:  # a bound of the gap and the training error
            log, form = (log if q == 0 else log_up(log_add(log, math.log(q)))), f"{form} + train error"
        saturates = whole and quantity == "risk"  # what its formula gives above 1 is no distance from saying something
        return Value(
            self.name,
            quantity,
            self.kind,
            log,
            form,
            always=1.0,
            trivial=proof.trivial,
            saturates=saturates,
            proof=proof,
        )

    @property
    def trivial(self) -> bool:
        """Whether the least proof of the gap covers nothing: `gap` is then no statement about learning."""
        return self._gap.trivial

    @property
    def risk_trivial(self) -> bool:
        """Whether the risk bound rests on a trivial gap."""
        return self._risk.trivial

    @property
    def gap(self) -> float:
        """Upper bound of the gap, capped at 1."""
        return self.of("gap").value

    @property
    def log10(self) -> float:
        """Base-10 logarithm of the gap bound, uncapped."""
        return self.of("gap").log10

    @property
    def risk(self) -> float:
        """Upper bound of the risk at the assumed training error, capped at 1."""
        return self.of("risk").value

    @property
    def log_risk(self) -> float:
        """Logarithm of the risk bound, uncapped."""
        return self.of("risk").log_value

    @property
    def log10_risk(self) -> float:
        """Base-10 logarithm of the risk bound, for print."""
        return self.of("risk").log10

    @property
    def vacuous(self) -> bool:
        """Whether the gap bound is 1 (within a thousandth), as for every [0, 1] loss anyway, or trivial."""
        return self.of("gap").says_nothing

    @property
    def risk_vacuous(self) -> bool:
        """Whether the risk bound is 1 (within a thousandth), or rests on a trivial gap."""
        return self.of("risk").says_nothing

    @property
    def strategy(self) -> str:
        """The theorem of G that bounds the gap."""
        return self._gap.certificate.strategy

    @property
    def risk_strategy(self) -> str:
        """The theorem of G that bounds the risk."""
        return self.of("risk").form

    @property
    def pieces(self) -> Mapping[str, float]:
        """Each piece's part of the gap bound's log counts."""
        return self._gap.pieces

    @property
    def dominant(self) -> tuple[str, float] | None:
        """The piece that costs most of the gap bound, and its part."""
        return self._gap.dominant

    @property
    def breakdown(self) -> Breakdown:
        """The proof of the gap bound taken apart, as it was checked."""
        return self._gap.breakdown

    @property
    def risk_breakdown(self) -> Breakdown:
        """The proof of the risk bound taken apart, as it was checked."""
        return self._risk.breakdown

    @property
    def certificate(self) -> Certificate:
        """What the checker re-derives the gap bound from."""
        return self._gap.certificate

    @property
    def risk_certificate(self) -> Certificate:
        """What the checker re-derives the risk bound from."""
        return self._risk.certificate

    @cached_property
    def floor(self) -> Floor | None:
        """A proved floor under every distribution-free bound of this gap; None where no construction is about the setting."""
        if self.by_gap is None or self.kind != "bound":
            return None
        from boundcalc.engine.floors import floor_of

        return floor_of(self.setting)

    @cached_property
    def risk_floor(self) -> Floor | None:
        """A proved floor under every distribution-free bound of the risk; None as above, or where the risk is refused."""
        if self.by_gap is None or self.kind != "bound" or self.risk_refusal is not None:
            return None
        from boundcalc.engine.floors import floor_of

        return floor_of(self.setting, "risk")

    @property
    def ratio(self) -> float | None:
        """How many times the floor the gap bound is at most, where it is below 1."""
        return None if self.floor is None else self.ratio_to(self.floor, "gap")

    def ratio_to(self, floor: Floor, quantity: Quantity) -> float | None:
        """How many times a floor the bound of a quantity is at most; None where it is vacuous."""
        bound = self.of(quantity)
        return None if bound.trivial or bound.log_value >= 0 else bound.value / floor.value

    def recording(self, compared: Compared | None) -> BoundValue:
        """The same, its certificates with what is known of how the architecture was held against a model."""

        def noted(proof: Proved | None) -> Proved | None:
            return None if proof is None else proof._replace(certificate=replace(proof.certificate, compared=compared))

        return replace(self, by_gap=noted(self.by_gap), by_risk=noted(self.by_risk))

    @property
    def _risk(self) -> Proved:
        if self.risk_refusal is not None:
            raise Unsupported(self.risk_refusal)
        return self.by_risk or self._gap

    @property
    def _gap(self) -> Proved:
        if self.by_gap is None:
            assert self.refusal is not None  # noqa: S101 - one of the two is always there
            raise Unsupported(self.refusal)
        return self.by_gap

    def to_json(self) -> dict[str, Any]:
        """The documented result object; what is refused or trivial has null values."""
        out: dict[str, Any] = {"name": self.name, "kind": self.kind} | dict.fromkeys(_VALUE_FIELDS)
        if self.by_gap is None:
            return out | {"refusal": str(self.refusal)}
        out |= {"vacuous": self.vacuous, "trivial": self.trivial}
        if not self.trivial:
            dominant = self.dominant
            out |= {"gap": self.gap, "log10_gap": self.log10, "strategy": self.strategy}
            out["dominant"] = None if dominant is None else {"piece": dominant[0], "share": dominant[1]}
        elif self.needed is not None:
            out["needed"] = self.needed.to_json()
        if self.risk_refusal is not None:
            return out | {"risk_refusal": str(self.risk_refusal)}
        out |= {"risk_vacuous": self.risk_vacuous, "risk_trivial": self.risk_trivial}
        if not self.risk_trivial:
            out |= {"risk": self.risk, "log10_risk": self.log10_risk, "risk_strategy": self.risk_strategy}
        return out

    def __str__(self) -> str:
        if self.refusal is not None:
            return f"{self.name}: refused: {self.refusal}"
        mark = "~" if self.kind == "proxy" else "<="
        gap = "trivial" if self.trivial else f"{mark} {upper(self.log10)}"
        risk = "trivial" if self.risk_trivial else f"{mark} {upper(self.log10_risk)}"
        said = "refused" if self.risk_refusal is not None else risk
        strategy = "" if self.trivial or self.strategy is None else f", by {self.strategy}"
        return f"{self.name} ({self.kind}): gap {gap}, risk {said}{strategy}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{key}</th><td>{value}</td></tr>" for key, value in self.to_json().items())
        return f"<table>{rows}</table>"

    def _repr_latex_(self) -> str:
        if self.trivial:
            return r"$\mathrm{gap}$: trivial"
        mark = r"\le" if self.kind != "proxy" else r"\approx"
        return rf"$\mathrm{{gap}} {mark} {upper_latex(self.log10)}$"


class Comparison(list[BoundValue]):
    """Bounds of one setting, side by side: a list that shows itself as a table."""

    def __str__(self) -> str:
        rows = [("bound", "kind", "gap <=", "risk <=", "strategy"), *map(_row, self)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        head, *body = [("bound", "kind", "gap \u2264", "risk \u2264", "strategy"), *map(_row, self)]
        cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in body)
        return f"<table><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>{cells}</table>"


def _row(value: BoundValue) -> tuple[str, ...]:
    if value.refusal is not None:
        return value.name, value.kind, "refused", "refused", str(value.refusal).partition(".")[0]
    mark = "~" if value.kind == "proxy" else ""
    gap = "trivial" if value.trivial else mark + upper(value.log10)
    risk = "trivial" if value.risk_trivial else mark + upper(value.log10_risk)
    return value.name, value.kind, gap, "refused" if value.risk_refusal is not None else risk, value.strategy or ""
