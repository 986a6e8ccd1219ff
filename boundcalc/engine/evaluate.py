"""`evaluate`: from a setting to checked values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from boundcalc.base.errors import CertificateError, InvalidSetting, Refusal, Unsupported
from boundcalc.base.numbers import FLOAT, log_add
from boundcalc.base.records import dataclass
from boundcalc.base.rounding import log_up, upper, upper_latex
from boundcalc.base.value import Kind, Value
from boundcalc.engine.ground import Found, Shared
from boundcalc.engine.links import Needed
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems import BOUNDS, POLICIES, known_bound
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import Checked, Checker
from boundcalc.proof.trivial import covers_nothing
from boundcalc.setting import Setting
from boundcalc.setting.accounting import refuse_missing
from boundcalc.setting.validate import choice
from boundcalc.statements.posthoc import pay, union
from boundcalc.statements.premise import no_member
from boundcalc.statements.strategies import Quantity

if TYPE_CHECKING:
    from boundcalc.base.compared import Compared
    from boundcalc.proof.breakdown import Breakdown

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
        return covers_nothing(self.certificate)

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
        kind: "bound", "a_posteriori" (P1 paid), "proxy" or "estimate".
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


def evaluate(setting: Setting, bound: str = "best") -> BoundValue:
    """The bound of one policy, checked.

    Args:
        setting: what is bounded: architecture, norms, sample.
        bound: a policy or a theorem (`boundcalc list` names all).

    Returns:
        The gap and the risk with their certificates, and of which kind they are.

    Raises:
        Unsupported: where the bound does not apply to the setting.
    """
    value = compare(setting, [bound])[0]
    if value.refusal is not None:
        raise Unsupported(value.refusal)
    return value


def compare(setting: Setting, bounds: Iterable[str] | None = None, *, desk: Desk | None = None) -> Comparison:
    """The bounds of several policies, each checked.

    Args:
        setting: what is bounded.
        bounds: policies and theorems; all policies, unless named.
        desk: one made for the setting lets later questions about it (`solve`) reuse what is found here.

    Returns:
        A value for each, in this order; a refusal is a value too. The list shows itself as a table, in notebooks as HTML.
    """
    names = list(POLICIES) if bounds is None else [known_bound(name) for name in bounds]
    desk = desk or Desk(setting)
    return Comparison(desk.value(name) for name in names)


def refuse_symbols(setting: Setting) -> None:
    """Values are of numbers."""
    if setting.symbols:
        raise InvalidSetting(
            f"a value needs numbers, got the symbols {', '.join(setting.symbols)}: give them values, "
            "or ask boundcalc.formulas.symbolic.closed_form for the formula"
        )


class Desk:
    """One setting's searches and proofs, each made once however many policies share it."""

    def __init__(self, setting: Setting) -> None:
        refuse_symbols(setting)
        refuse_missing(setting.norms, setting.architecture)
        self.setting = setting
        self.paid, self.measured = pay(setting)
        self.log_union = 0.0 if self.measured is None else union(FLOAT, self.paid, self.measured)
        self.kind: Kind = "bound" if self.measured is None else "a_posteriori"
        self._checker = Checker()
        self._shared: Shared = {}
        self._searches: dict[str, Search] = {}
        self._found: dict[tuple[str, Quantity], list[Found] | Refusal] = {}
        self._proved: dict[int, tuple[Certificate, Proved]] = {}

    def search(self, name: str) -> Search:
        """The search of a policy."""
        if name not in self._searches:
            self._searches[name] = Search(
                self.paid, BOUNDS[name], log_union=self.log_union, measured=self.measured, shared=self._shared
            )
        return self._searches[name]

    @cached_property
    def risk_refusal(self) -> Refusal | None:
        """Why no network of the class meets the premise of a risk bound (G0e), whatever the policy."""
        return no_member(self.paid)

    def found(self, name: str, quantity: Quantity) -> list[Found]:
        """What a policy's search proposes, not checked; raises `Unsupported` where it does not apply."""
        found = self._gather(name, quantity)
        if isinstance(found, Refusal):
            raise Unsupported(found)
        return found

    def glance(self, name: str) -> Found | None:
        """A gap certificate of a policy that is found quickly and need not be its least; None where there is none."""
        try:
            return self.search(name).glance()
        except Unsupported:
            return None

    def at_most(self, name: str, found: Found) -> BoundValue:
        """What one certificate of the gap says of a policy's gap and risk."""
        return BoundValue(name, self.kind, self.setting, self.prove([found]), None, risk_refusal=self.risk_refusal)

    def value(self, name: str) -> BoundValue:
        """A policy's checked gap and risk."""
        gaps = self._gather(name, "gap")
        if isinstance(gaps, Refusal):
            return BoundValue(name, self.kind, self.setting, None, None, gaps)
        risks = [] if self.risk_refusal is not None else self._gather(name, "risk")
        return self._settle(name, self.search(name), self.setting, gaps, [] if isinstance(risks, Refusal) else risks)

    def value_of(self, name: str, search: Search, setting: Setting, *, risks: bool = True) -> BoundValue:
        """The checked gap and risk of one search alone, perhaps for another number of samples."""
        found = list(search.risks()) if risks and self.risk_refusal is None else []
        return self._settle(name, search, setting, list(search.gaps()), found)

    def _settle(
        self, name: str, search: Search, setting: Setting, gaps: Sequence[Found], risks: Sequence[Found]
    ) -> BoundValue:
        by_gap = self.prove(gaps)
        needed = search.first_link() if by_gap.trivial else None
        refusal = self.risk_refusal
        plain = BoundValue(name, self.kind, setting, by_gap, None, risk_refusal=refusal, needed=needed)
        if refusal is not None:
            return plain
        ways = [replace(plain, by_risk=self.prove(risks))] if risks else []
        telling = [plain]
        if by_gap.trivial:  # a gap proof that compares something, above the trivial one
            above = [found for found in gaps if not covers_nothing(found.certificate)]
            telling = [replace(plain, by_risk=self.prove(above))] if above else []
        ways += telling
        return min(ways, key=lambda value: value.log_risk, default=plain)

    def _gather(self, name: str, quantity: Quantity) -> list[Found] | Refusal:
        """A policy's own certificates; `best` also takes the narrower ones', which its own search may miss."""
        own = self._find(name, quantity)
        if isinstance(own, Refusal) or name != "best":
            return own
        others = [self._find(part.name, quantity) for part in POLICIES.values() if part.form != "published"]
        return [found for part in others if not isinstance(part, Refusal) for found in part]

    def _find(self, name: str, quantity: Quantity) -> list[Found] | Refusal:
        key = (name, quantity)
        if key not in self._found:
            search = self.search(name)
            try:
                self._found[key] = list(search.gaps() if quantity == "gap" else search.risks())
            except Unsupported as error:
                self._found[key] = error.refusal
        return self._found[key]

    def prove(self, found: Sequence[Found]) -> Proved:
        """The least value the search claims that the checker confirms."""
        failure: CertificateError | None = None
        for candidate in sorted(found, key=lambda f: f.log_value):
            try:
                return self._check(candidate.certificate)
            except CertificateError as error:
                failure = error
        raise failure or InvalidSetting("no bound was found")

    def _check(self, certificate: Certificate) -> Proved:
        key = id(certificate)  # kept alive beside its proof, so the id stays its own
        if key not in self._proved:
            checked = self._checker.check(certificate)
            self._proved[key] = certificate, Proved(checked.claimed, checked)
        return self._proved[key][1]
