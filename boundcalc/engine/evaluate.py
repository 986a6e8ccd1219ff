"""`evaluate`: from a setting to checked values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from boundcalc.calculus.posthoc import norms_cost, pay
from boundcalc.certificate import Certificate
from boundcalc.checker import Checked, check
from boundcalc.engine.search import Found, Search
from boundcalc.errors import CertificateError, InvalidSetting, Refusal, Unsupported
from boundcalc.numbers import FLOAT
from boundcalc.setting import Setting
from boundcalc.setting.validate import choice
from boundcalc.theorems import POLICIES, Policy

Kind = Literal["bound", "a_posteriori", "proxy", "estimate"]
_LN10 = math.log(10)
VACUOUS_MARGIN = 1e-6
"""Bounds within a millionth of 1 say nothing either."""
_CANDIDATES = 2
"""How many of the search's best certificates are checked: their order is the search's word only."""


@dataclass(frozen=True, slots=True)
class Proved:
    """A certificate that passed, its log value (uncapped) and each piece's part."""

    certificate: Certificate
    log_value: float
    pieces: Mapping[str, float]

    @property
    def log10(self) -> float:
        """Base-10 logarithm of the uncapped value."""
        return self.log_value / _LN10

    @property
    def capped(self) -> float:
        """The value, at most 1."""
        return min(1.0, math.exp(min(self.log_value, 1.0)))

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
    """

    name: str
    kind: Kind
    setting: Setting
    by_gap: Proved | None
    by_risk: Proved | None
    refusal: Refusal | None = field(default=None)

    @property
    def gap(self) -> float:
        """Upper bound of the gap, capped at 1."""
        return self._gap.capped

    @property
    def log10(self) -> float:
        """Base-10 logarithm of the gap bound, uncapped."""
        return self._gap.log10

    @property
    def risk(self) -> float:
        """Upper bound of the risk at the assumed training error, capped at 1."""
        return min(1.0, math.exp(min(self.log_risk, 1.0)))

    @property
    def log_risk(self) -> float:
        """Logarithm of the risk bound, uncapped."""
        proof = self.by_risk or self._gap
        if proof.certificate.quantity == "risk":
            return proof.log_value
        q = self.setting.sample.train_error
        return math.nextafter(
            max(proof.log_value, 0.0)
            + math.log(math.exp(min(0.0, proof.log_value)) + q * math.exp(-max(proof.log_value, 0.0))),
            math.inf,
        )

    @property
    def vacuous(self) -> bool:
        """Whether both bounds are 1 (to six digits), as every [0, 1] loss is anyway."""
        return min(self._gap.log_value, self.log_risk) > -VACUOUS_MARGIN

    @property
    def strategy(self) -> str:
        """The theorem of G that bounds the gap."""
        return self._gap.certificate.strategy

    @property
    def risk_strategy(self) -> str:
        """The theorem of G that bounds the risk."""
        proof = self.by_risk or self._gap
        risk = proof.certificate.quantity == "risk"
        return proof.certificate.strategy if risk else f"{proof.certificate.strategy} + train error"

    @property
    def pieces(self) -> Mapping[str, float]:
        """Each piece's part of the gap bound's log counts."""
        return self._gap.pieces

    @property
    def dominant(self) -> tuple[str, float] | None:
        """The piece that costs most and its part: of the gap bound, or of the risk bound where that chains nothing."""
        found = self._gap.dominant
        return found if found is not None or self.by_risk is None else self.by_risk.dominant

    @property
    def certificate(self) -> Certificate:
        """What the checker re-derives the gap bound from."""
        return self._gap.certificate

    @property
    def risk_certificate(self) -> Certificate:
        """What the checker re-derives the risk bound from."""
        return (self.by_risk or self._gap).certificate

    @property
    def _gap(self) -> Proved:
        if self.by_gap is None:
            assert self.refusal is not None  # noqa: S101 - one of the two is always there
            raise Unsupported(self.refusal)
        return self.by_gap

    def to_json(self) -> dict[str, Any]:
        """The documented result object; refused bounds carry "refusal" and null values."""
        if self.by_gap is None:
            values: dict[str, Any] = dict.fromkeys(("gap", "log10_gap", "risk", "log10_risk", "vacuous", "strategy"))
            return {"name": self.name, "kind": self.kind, **values, "dominant": None, "refusal": str(self.refusal)}
        dominant = self.dominant
        return {
            "name": self.name,
            "kind": self.kind,
            "gap": self.gap,
            "log10_gap": self.log10,
            "risk": self.risk,
            "log10_risk": self.log_risk / _LN10,
            "vacuous": self.vacuous,
            "strategy": self.strategy,
            "risk_strategy": self.risk_strategy,
            "dominant": None if dominant is None else {"piece": dominant[0], "share": dominant[1]},
        }

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{key}</th><td>{value}</td></tr>" for key, value in self.to_json().items())
        return f"<table>{rows}</table>"

    def _repr_latex_(self) -> str:
        mark = r"\le" if self.kind != "proxy" else r"\approx"
        exponent = math.floor(self.log10)
        mantissa = math.ceil(10 ** (self.log10 - exponent) * 1000) / 1000
        return rf"$\mathrm{{gap}} {mark} {mantissa:.3f}\cdot 10^{{{exponent}}}$"


def evaluate(setting: Setting, bound: str = "best") -> BoundValue:
    """The bound of one policy, checked; raises `Unsupported` where it does not apply."""
    value = compare(setting, [bound])[0]
    if value.refusal is not None:
        raise Unsupported(value.refusal)
    return value


def compare(setting: Setting, bounds: Iterable[str] | None = None) -> list[BoundValue]:
    """The bounds of several policies (all, unless named), each checked; refusals are values too."""
    names = list(POLICIES) if bounds is None else [choice("bound", name, POLICIES) for name in bounds]
    paid, measured = pay(setting)
    log_union = 0.0 if measured is None else norms_cost(FLOAT, paid.norms)
    kind: Kind = "bound" if measured is None else "a_posteriori"
    found: dict[str, tuple[list[Found], list[Found]] | Refusal] = {}
    for name in names:
        for part in _parts(POLICIES[name]):
            if part.name not in found:
                found[part.name] = _search(paid, part, log_union, measured)
    return [_value(name, kind, setting, _gather(POLICIES[name], found)) for name in names]


def _parts(policy: Policy) -> Sequence[Policy]:
    """A policy's searches: `best` also takes what the narrower ones find, which its own search may miss."""
    if policy.name != "best":
        return (policy,)
    return [policy, *(part for part in POLICIES.values() if part.form != "published" and part is not policy)]


def _search(
    setting: Setting, policy: Policy, log_union: float, measured: Mapping[str, Any] | None
) -> tuple[list[Found], list[Found]] | Refusal:
    search = Search(setting, policy, log_union=log_union)
    try:
        gaps, risks = list(search.gaps()), list(search.risks())
    except Unsupported as error:
        return error.refusal
    return _record(gaps, measured), _record(risks, measured)


def _record(found: Iterable[Found], measured: Mapping[str, Any] | None) -> list[Found]:
    if measured is None:
        return list(found)
    return [replace(f, certificate=replace(f.certificate, measured=measured)) for f in found]


def _gather(
    policy: Policy, found: Mapping[str, tuple[list[Found], list[Found]] | Refusal]
) -> tuple[list[Found], list[Found]] | Refusal:
    own = found[policy.name]
    if isinstance(own, Refusal):
        return own
    gaps, risks = list(own[0]), list(own[1])
    for part in _parts(policy)[1:]:
        other = found[part.name]
        if not isinstance(other, Refusal):
            gaps += other[0]
            risks += other[1]
    return gaps, risks


def _value(name: str, kind: Kind, setting: Setting, found: tuple[list[Found], list[Found]] | Refusal) -> BoundValue:
    if isinstance(found, Refusal):
        return BoundValue(name, kind, setting, None, None, found)
    by_gap = _prove(found[0])
    by_risk = _prove(found[1]) if found[1] else None
    value = BoundValue(name, kind, setting, by_gap, by_risk)
    plain = BoundValue(name, kind, setting, by_gap, None)
    return plain if by_risk is not None and plain.log_risk < value.log_risk else value


def _prove(found: Sequence[Found]) -> Proved:
    """The least value that the checker confirms among the search's best."""
    ordered = sorted(found, key=lambda f: f.log_value)
    proved: list[Proved] = []
    failure: CertificateError | None = None
    for candidate in ordered:
        try:
            proved.append(_checked(candidate.certificate, check(candidate.certificate)))
        except CertificateError as error:
            failure = error
        if len(proved) == _CANDIDATES:
            break
    if not proved:
        raise failure or InvalidSetting("no bound was found")
    return min(proved, key=lambda p: p.log_value)


def _checked(certificate: Certificate, checked: Checked) -> Proved:
    return Proved(replace(certificate, log_value=checked.log_value), checked.log_value, checked.shares)
