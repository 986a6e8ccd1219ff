"""Policies: which lemmas and which theorems of G a search may use."""

from __future__ import annotations

from dataclasses import dataclass

from boundcalc.calculus.covers import CoverLemma

_VECTORS = frozenset({"T8", "T9", "T10"})
"""Offsets, gains and tables have only these covers: every policy has them."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule for the search.

    Attributes:
        name: on the command line and in results.
        title: a few words.
        lemmas: names of the covering lemmas it may use (offsets, gains and tables aside).
        form: "search" over all theorems of G, or one of the closed forms "closed", "published".
    """

    name: str
    title: str
    lemmas: frozenset[str]
    form: str = "search"

    def allows(self, lemma: CoverLemma) -> bool:
        """Whether the search may use a lemma."""
        return lemma.name in self.lemmas or lemma.name in _VECTORS


_COUNTING = frozenset({"T1", "T2"})
_T_FREE = frozenset({"T3", "T4", "T4r", "T4v", "T4f"})
_UNIFORM = frozenset({"T3", "T4", "T4r", "T4v", "T4f", "T5", "T6"})

POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("best", "every lemma, every theorem of G, the least", _UNIFORM | {"T1", "T2"}),
        Policy(
            "closed",
            "closed form: T1/T2, optimal split (A4), one-line chaining (G1), gap (G2)",
            _COUNTING,
            "closed",
        ),
        Policy("edelman", "log T covers T1 and T2 alone, explicit constants", _COUNTING),
        Policy("trauger", "covers independent of T: Maurey and volumetric", _T_FREE),
        Policy("parameters", "parameter counting: volumetric covers alone", frozenset({"T4"})),
        Policy("published", "the constants of the literature (PUB)", frozenset({"Tpub"}), "published"),
    )
}
"""Every policy by name, in the order of the table."""

_NAMED = (
    Policy("edelman2022", "deep attention networks, log T: as closed", _COUNTING, "closed"),
    Policy("trauger2024", "independent of T: as trauger", _T_FREE),
    Policy("zhang2022", "learning error independent of the input size (X5)", frozenset({"T4", "T4r"})),
    Policy("truong2024", "low-rank matrices, independent of T", frozenset({"T4", "T4r", "T5"})),
    Policy("sakai2026", "spectrum-adaptive, independent of T", frozenset({"T4", "T4r", "T5", "T6"})),
)
BOUNDS: dict[str, Policy] = POLICIES | {policy.name: policy for policy in _NAMED}
"""What `--bound` takes: the policies, and the published theorems that give a number for any setting, by the covers each
paper uses with this library's constants."""
