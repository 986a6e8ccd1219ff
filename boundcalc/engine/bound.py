"""What is proved of a setting: the checked bounds of its gap and risk, alone and side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.rounding import upper
from boundcalc.base.table import as_text
from boundcalc.base.validate import choice
from boundcalc.base.value import Kind
from boundcalc.proof.checker import Checked
from boundcalc.setting import Setting

if TYPE_CHECKING:
    from boundcalc.base.compared import Compared
    from boundcalc.proof.floor import Floor
    from boundcalc.statements.strategies import Quantity

FIELDS = (
    *("gap", "log10_gap", "risk", "log10_risk", "vacuous", "risk_vacuous", "trivial", "risk_trivial"),
    *("strategy", "risk_strategy", "dominant"),
)
"""What the JSON of a bound has besides its name and kind; null where it is refused or trivial."""


def _part(quantity: Quantity, name: str, doc: str) -> Any:
    """What the bound of a quantity says of itself, as a property of both."""
    return property(lambda self: getattr(self.of(quantity), name), doc=doc)


@dataclass(frozen=True)
class BoundValue:
    """A checked upper bound of the generalization gap, and of the risk at the given training error.

    Attributes:
        name: the policy or theorem.
        kind: "bound", "a_posteriori" (corrected for what was chosen from the data), "proxy" or "estimate".
        setting: what is bounded.
        by_gap: the checked bound of the gap, or why there is none.
        by_risk: the checked bound of the risk, or why there is none.
    """

    name: str
    kind: Kind
    setting: Setting
    by_gap: Checked | Refusal
    by_risk: Checked | Refusal

    @property
    def refusal(self) -> Refusal | None:
        """Why there is no value."""
        return self.by_gap if isinstance(self.by_gap, Refusal) else None

    @property
    def risk_refusal(self) -> Refusal | None:
        """Why there is no bound of the risk, though there is one of the gap."""
        return self.by_risk if self.refusal is None and isinstance(self.by_risk, Refusal) else None

    @property
    def proofs(self) -> list[Checked]:
        """The proofs of gap and risk, each once."""
        proofs = [proof for proof in (self.by_gap, self.by_risk) if isinstance(proof, Checked)]
        return proofs[:1] if len(proofs) == 2 and proofs[0].certificate == proofs[1].certificate else proofs

    def of(self, quantity: str) -> Checked:
        """The bound of the gap, or of the risk at the given training error, by itself.

        Args:
            quantity: "gap" or "risk".

        Returns:
            The value with its kind, the theorem of G that gives it, and its proof.

        Raises:
            Unsupported: where there is none.
        """
        proof = self.by_gap if choice("quantity", quantity, ("gap", "risk")) == "gap" else self.by_risk
        if isinstance(proof, Refusal):
            raise Unsupported(proof)
        return proof

    gap = _part("gap", "value", "Upper bound of the gap, capped at 1.")
    log10 = _part("gap", "log10", "Base-10 logarithm of the gap bound, uncapped.")
    risk = _part("risk", "value", "Upper bound of the risk at the given training error, capped at 1.")
    log_risk = _part("risk", "log_value", "Logarithm of the risk bound, uncapped.")
    log10_risk = _part("risk", "log10", "Base-10 logarithm of the risk bound, for print.")
    trivial = _part("gap", "trivial", "Whether every covering argument gives a gap bound above 1.")
    vacuous = _part("gap", "vacuous", "Whether the gap bound is 1 (within a thousandth), or trivial.")
    risk_vacuous = _part("risk", "vacuous", "Whether the risk bound is 1, or is based on a trivial gap.")
    strategy = _part("gap", "form", "The theorem of G that bounds the gap.")
    dominant = _part("gap", "dominant", "The piece that costs most of the gap bound, and its part.")
    breakdown = _part("gap", "breakdown", "The proof of the gap bound taken apart, as it was checked.")
    certificate = _part("gap", "certificate", "What the checker re-derives the gap bound from.")
    risk_certificate = _part("risk", "certificate", "What the checker re-derives the risk bound from.")

    @cached_property
    def floor(self) -> Floor | None:
        """A proved floor under every distribution-free bound of this gap; None without a construction."""
        return self._floor("gap")

    @cached_property
    def risk_floor(self) -> Floor | None:
        """A proved floor under every distribution-free bound of the risk; None without one or for a refused risk."""
        return self._floor("risk") if self.risk_refusal is None else None

    def _floor(self, quantity: Quantity) -> Floor | None:
        from boundcalc.engine.floors import floor_of

        return floor_of(self.setting, quantity) if self.refusal is None and self.kind == "bound" else None

    @property
    def ratio(self) -> float | None:
        """How many times the floor the gap bound is at most, where it is below 1."""
        return None if self.floor is None else self.ratio_to(self.floor, "gap")

    def ratio_to(self, floor: Floor, quantity: Quantity) -> float | None:
        """How many times a floor the bound of a quantity is at most; None where it is vacuous."""
        bound = self.of(quantity)
        return None if bound.trivial or bound.log_value >= 0 else bound.value / floor.value

    def recording(self, compared: Compared | None) -> BoundValue:
        """The same, its certificates with the record of how the architecture was compared with a model."""

        def noted(proof: Checked | Refusal) -> Checked | Refusal:
            if isinstance(proof, Refusal):
                return proof
            return replace(proof, certificate=replace(proof.certificate, compared=compared))

        return replace(self, by_gap=noted(self.by_gap), by_risk=noted(self.by_risk))

    def to_json(self) -> dict[str, Any]:
        """The documented result object; what is refused or trivial has null values."""
        out: dict[str, Any] = {"name": self.name, "kind": self.kind} | dict.fromkeys(FIELDS)
        if self.refusal is not None:
            return out | {"refusal": str(self.refusal)}
        for prefix, quantity in (("", "gap"), ("risk_", "risk")):
            if quantity == "risk" and self.risk_refusal is not None:
                return out | {"risk_refusal": str(self.risk_refusal)}
            proof = self.of(quantity)
            out |= {f"{prefix}vacuous": proof.vacuous, f"{prefix}trivial": proof.trivial}
            if not proof.trivial:
                out |= {quantity: proof.value, f"log10_{quantity}": proof.log10, f"{prefix}strategy": proof.form}
        if not self.trivial and self.dominant is not None:
            out["dominant"] = {"piece": self.dominant[0], "share": self.dominant[1]}
        return out

    def _cell(self, quantity: Quantity) -> str:
        """A quantity as a table shows it."""
        if quantity == "risk" and self.risk_refusal is not None:
            return "refused"
        proof = self.of(quantity)
        return "trivial" if proof.trivial else "~" * (self.kind == "proxy") + upper(proof.log10)

    @property
    def row(self) -> tuple[str, ...]:
        """Its row in a table of bounds: name, kind, gap, risk, theorem."""
        if self.refusal is not None:
            return self.name, self.kind, "refused", "refused", str(self.refusal).partition(".")[0]
        return self.name, self.kind, self._cell("gap"), self._cell("risk"), self.strategy

    def __str__(self) -> str:
        if self.refusal is not None:
            return f"{self.name}: refused: {self.refusal}"
        gap, risk = (
            text if text in ("trivial", "refused") else f"<= {text}".replace("<= ~", "~ ")
            for text in (self._cell("gap"), self._cell("risk"))
        )
        return f"{self.name} ({self.kind}): gap {gap}, risk {risk}{'' if self.trivial else f', by {self.strategy}'}"

    __repr__ = __str__


class Comparison(list[BoundValue]):
    """Bounds of one setting, side by side: a list that shows itself as a table."""

    def __str__(self) -> str:
        return as_text([("bound", "kind", "gap <=", "risk <=", "strategy"), *(value.row for value in self)])

    __repr__ = __str__
