"""The front door: a function and T in, certified weights of the construction with the least bound out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.base.validate import size
from boundcalc.engine.solve import Solution, solve
from boundcalc.lab.represent._certify import Certified
from boundcalc.lab.represent.construct import Construction, construct, possible_kinds, usable
from boundcalc.lab.represent.functions import SparseFunction

MARGIN = 1.0
"""Constructions are scaled to a certified margin of 1."""
GAMMA = MARGIN * (1 - 1e-5)
"""What bounds take as margin: an example whose margin is gamma itself would count as an error (G0), and the
network that a risk supposes is built in floats."""
RISK, DELTA = 0.05, 0.01
"""Constructions are ranked by the samples that bring the risk bound to 0.05 with probability 0.99."""
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Representation:
    """A certified construction, and the others it was preferred to.

    Attributes:
        construction: the weights.
        certified: what was shown of all inputs.
        needed: the smallest m at which the best checked risk bound of the class with these norms is at most 0.05.
        others: kind -> that m, for the constructions not taken.
    """

    construction: Construction
    certified: Certified
    needed: Solution
    others: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays."""
        network, function = self.construction.network, self.construction.function
        return {
            "function": function.describe(),
            "structure": function.structure,
            "support": list(function.variables),
            "construction": self.construction.kind,
            "beta": self.construction.beta,
            "hidden_units": len(network.w_1),
            "T": network.seq_len,
            "encoding": asdict(network.encoding),
            "norms": network.norms.to_json()["budgets"],
            "certificate": self.certified.to_json(),
            "samples": {"risk": RISK, "delta": DELTA, "m": self.needed.value, "others": self.others},
        }


def represent(function: SparseFunction, seq_len: int) -> Representation:
    """Certified weights for a function of some of T bits.

    All constructions the function allows are built; the one whose class needs the fewest samples is taken.
    """
    T = size("T", seq_len, most=_LONGEST)
    smallest = usable(function, T)
    candidates: list[tuple[float, Construction, Certified, Solution]] = []
    failure = NoSolution("no construction was found")
    for name in possible_kinds(smallest):
        try:
            built = construct(smallest, T, name)
        except NoSolution as error:
            failure = error
            continue
        certified = built.certify(MARGIN)
        needed = solve(built.network.setting(GAMMA, delta=DELTA), "m", RISK, quantity="risk")
        candidates.append((needed.value, built, certified, needed))
    if not candidates:
        raise failure
    best = min(candidates, key=lambda entry: entry[0])
    others = {built.kind: m for m, built, *_ in candidates if built.kind != best[1].kind}
    return Representation(*best[1:], others)
