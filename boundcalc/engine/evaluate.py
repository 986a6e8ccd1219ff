"""`evaluate`: from a setting to checked values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from boundcalc.base.errors import CertificateError, InvalidSetting, Refusal, Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.base.value import Kind
from boundcalc.engine._witness import no_witness
from boundcalc.engine.bound import BoundValue, Comparison
from boundcalc.engine.search import Candidate, Search, Shared
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import Checked, Checker
from boundcalc.setting import Setting
from boundcalc.statements.posthoc import correct_for_selection, posthoc_cost
from boundcalc.theorems import BOUNDS, POLICIES, known_bound


def evaluate(setting: Setting, bound: str = "best") -> BoundValue:
    """The bound of one policy, checked.

    Args:
        setting: what is bounded: architecture, norms, sample.
        bound: a policy or a theorem (`boundcalc explain` names all).

    Returns:
        The gap and the risk with their certificates, and of which kind they are.

    Raises:
        Unsupported: where the bound does not apply to the setting.
    """
    value = compare(setting, [bound])[0]
    if value.refusal is not None:
        raise Unsupported(value.refusal)
    return value


def compare(setting: Setting, bounds: Iterable[str] | None = None) -> Comparison:
    """The bounds of several policies, each checked.

    Args:
        setting: what is bounded.
        bounds: policies and theorems; all policies, unless named.

    Returns:
        A value for each, in this order; a refusal is a value too. The list shows itself as a table.
    """
    names, evaluator = list(POLICIES) if bounds is None else list(map(known_bound, bounds)), Evaluator(setting)
    return Comparison(map(evaluator.value, names))


class Evaluator:
    """One setting's searches and proofs, each made once however many policies share it."""

    def __init__(self, setting: Setting, premise: Callable[[Setting], Refusal | None] | None = None) -> None:
        """`premise`: why no risk bound is requested, instead of `no_witness`."""
        setting.refuse_symbols()
        setting.refuse_missing()
        self.setting = setting
        self._premise = premise
        self.paid, self.measured = correct_for_selection(setting)
        self.log_union = 0.0 if self.measured is None else posthoc_cost(FLOAT, self.paid, self.measured)
        self.kind: Kind = "bound" if self.measured is None else "a_posteriori"
        self._checker = Checker()
        self._shared: Shared = {}
        self._searches: dict[str, Search] = {}
        self._checked: dict[int, tuple[Certificate, Checked]] = {}

    def search(self, name: str) -> Search:
        """The search of a policy."""
        if name not in self._searches:
            self._searches[name] = Search(
                self.paid, BOUNDS[name], log_union=self.log_union, measured=self.measured, shared=self._shared
            )
        return self._searches[name]

    @cached_property
    def risk_refusal(self) -> Refusal | None:
        """Why no network of the class is known to meet the premise of a risk bound, whatever the policy."""
        if self._premise is not None:
            return self._premise(self.paid)
        return no_witness(self.paid, measured=bool(self.setting.sample.measured))

    def value(self, name: str, search: Search | None = None, *, risks: bool = True) -> BoundValue:
        """A policy's checked gap and risk, or those of one search alone: of another number of samples, say.

        `best` also takes the narrower policies' candidates, which its own search may miss.
        """
        searches, setting = [search or self.search(name)], self.setting
        if search is not None:
            setting = replace(setting, sample=replace(setting.sample, n_train=search.m))
        elif name == "best":
            searches += [self.search(p.name) for p in POLICIES.values() if p.form != "published" and p.name != name]
        gaps: list[Candidate] = []
        margins: list[Candidate] = []
        for part in searches:
            try:
                gaps += part.candidates("gap")
                if risks and self.risk_refusal is None:
                    margins += part.candidates("risk")
            except Unsupported as error:
                if not gaps:
                    return BoundValue(name, self.kind, setting, error.refusal, error.refusal)
        by_gap, q = self.prove(gaps), setting.sample.train_error
        if self.risk_refusal is not None:
            return BoundValue(name, self.kind, setting, by_gap, self.risk_refusal)
        ways = [self.prove(margins)] if margins else []
        covering = gaps if not by_gap.trivial else [gap for gap in gaps if not gap.certificate.trivial]
        if covering:  # a gap proof that compares something, perhaps above the trivial one
            ways.append(self.prove(covering).bounding("risk", q))
        by_risk = min(ways, key=lambda way: way.log_value, default=by_gap.bounding("risk", q))
        return BoundValue(name, self.kind, setting, by_gap, by_risk)

    def prove(self, candidates: Sequence[Candidate]) -> Checked:
        """The least value the search claims that the checker confirms."""
        failure: CertificateError | None = None
        for candidate in sorted(candidates, key=lambda candidate: candidate.log_value):
            try:
                return self.check(candidate.certificate)
            except CertificateError as error:
                failure = error
        raise failure or InvalidSetting("no bound was found")

    def check(self, certificate: Certificate) -> Checked:
        """A certificate, checked once."""
        key = id(certificate)  # kept alive next to its proof, so the id stays its own
        if key not in self._checked:
            self._checked[key] = certificate, self._checker.check(certificate)
        return self._checked[key][1]
