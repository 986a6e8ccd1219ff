"""Which proofs cover nothing: they compare no two networks, and say only how far a loss can vary."""

from __future__ import annotations

from boundcalc.proof.certificate import Certificate
from boundcalc.statements.strategies import STRATEGIES


def covers_nothing(certificate: Certificate) -> bool:
    """Whether no piece is covered at any level (J = 0, or zero maps alone); to count stored weights is to cover them.

    Around references (distances) the zero map is a network of its own, the reference: its cover has one centre, and is one.
    """
    if STRATEGIES[certificate.strategy].coverless:
        return False
    if any(budget.distance is not None for budget in certificate.setting.norms.budgets.values()) and certificate.levels:
        return False
    choices = (choice for level in certificate.levels for cover in level.covers.values() for choice in cover.choices)
    return all(choice.lemma == "zero" for choice in choices)
