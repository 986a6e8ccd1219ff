"""Policies: which lemmas and which theorems of G a search may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boundcalc.base.errors import Refusal
from boundcalc.statements.covers import ALWAYS, COUNTING, LEMMAS
from boundcalc.statements.noises import NOISES

if TYPE_CHECKING:
    from boundcalc.setting import Setting
    from boundcalc.statements.covers import CoverLemma


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule for the search.

    Attributes:
        name: on the command line and in results.
        title: a few words.
        lemmas: names of the covering lemmas it may use (offsets, gains and tables aside).
        form: "search" over all theorems of G, or one of the closed forms "closed", "published".
        meeting: whether linear maps that meet may be covered as one (A6).
        laws: names of the laws with which noise may be compared that stands for covers (G11).
        refining: whether levels of a chain may refine one another.
        comparison: whether Gaussian comparison (K1, K2) may take the place of covers.
        stored: whether weights of so many bits, where a setting gives their number, may be counted instead of covered
            (G13).
    """

    name: str
    title: str
    lemmas: frozenset[str]
    form: str = "search"
    meeting: bool = False
    laws: frozenset[str] = frozenset()
    refining: bool = False
    stored: bool = False
    comparison: bool = False

    def allows(self, lemma: CoverLemma) -> bool:
        """Whether the search may use a lemma."""
        return lemma.name in self.lemmas or lemma.name in ALWAYS

    def refuses(self, setting: Setting) -> Refusal | None:
        """Why the policy is not about a setting, or None."""
        if self.comparison and not self.lemmas:
            from boundcalc.statements.comparison.network import refusal

            why = refusal(setting)
            if why is not None:
                return Refusal(self.name, "this setting", why.removeprefix("theorem K needs "), "Take --bound best.")
        return None


_UNIFORM = frozenset(name for name, lemma in LEMMAS.items() if lemma.uniform and name not in ALWAYS)
_COUNTED = " and ".join(sorted(COUNTING))

POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy(
            "best",
            "the smallest bound that any lemma and any theorem of G proves",
            _UNIFORM,
            meeting=True,
            laws=frozenset(NOISES),
            refining=True,
            stored=True,
            comparison=True,
        ),
        Policy(
            "closed",
            f"closed form: {_COUNTED}, optimal split (A4), one-line chaining (G1), gap (G2)",
            COUNTING,
            "closed",
        ),
        Policy("T-free", "covers independent of T: Maurey and volumetric", _UNIFORM),
        Policy("parameters", "parameter counting: volumetric covers alone", frozenset({"T4"})),
        Policy(
            "comparison",
            "Gaussian comparison instead of covers (K1, K2): free of T and width",
            frozenset(),
            comparison=True,
        ),
        Policy("published", "the constants of the literature (PUB)", frozenset({"Tpub"}), "published"),
    )
}
"""Every policy by name, in the order of the table."""
