"""The front door: a function and T in, certified weights of the construction with the least bound out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.engine.solve import Solution, solve
from boundcalc.lab.represent.certify import Certified
from boundcalc.lab.represent.construct import KINDS, Construction, construct, possible_kinds, usable
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.positions import Positions, compact, orthonormal
from boundcalc.setting import Setting
from boundcalc.setting.validate import choice, size

MARGIN = 1.0
"""Constructions are scaled to a certified margin of 1."""
GAMMA = math.nextafter(MARGIN, 0.0)
"""What bounds take as margin: an example whose margin is gamma itself would count as an error (G0)."""
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

    @property
    def setting(self) -> Setting:
        """The class with exactly these norms, just below the certified margin."""
        return self.construction.network.setting(GAMMA, delta=DELTA)

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays."""
        construction = self.construction
        network = construction.network
        function = construction.function
        return {
            "function": function.describe(),
            "structure": function.structure,
            "support": list(function.variables),
            "construction": construction.kind,
            "T": network.seq_len,
            "encoding": network.encoding.to_json(),
            "coherence": network.encoding.positions.coherence,
            "beta": construction.beta,
            "hidden_units": network.blocks[0].w_1.shape[0],
            "norms": network.norms.to_json()["budgets"],
            "certificate": self.certified.to_json(),
            "samples": {"risk": RISK, "delta": DELTA, "m": self.needed.value, "others": self.others},
        }


def positions_for(seq_len: int, s: int, how: Literal["orthonormal", "compact"]) -> Positions:
    """Orthonormal positions, or compact ones for selecting s of T."""
    T = size("T", seq_len)
    if T > _LONGEST:
        raise InvalidSetting(f"T may be at most 2^20 = {_LONGEST} for explicit weights, got {T}")
    return orthonormal(T) if choice("positions", how, ("orthonormal", "compact")) == "orthonormal" else compact(T, s)


def represent(
    function: SparseFunction,
    seq_len: int,
    *,
    positions: Literal["orthonormal", "compact"] = "orthonormal",
    kind: str | None = None,
) -> Representation:
    """Certified weights for a function of some of T bits.

    All constructions the function allows are built; the one whose class needs the fewest samples is taken, unless a
    kind is named.
    """
    smallest = usable(function, size("T", seq_len))
    where = positions_for(seq_len, smallest.arity, positions)
    kinds = possible_kinds(smallest)
    if kind is not None:
        choice("construction", kind, KINDS)
        if kind not in kinds:
            raise InvalidSetting(f"construction {kind!r} does not fit this function; these do: {', '.join(kinds)}")
        kinds = [kind]
    found: list[tuple[float, str, Construction, Certified, Solution]] = []
    failure: NoSolution | None = None
    for name in kinds:
        try:
            built = construct(smallest, where, name)
        except NoSolution as error:
            failure = error
            continue
        certified = built.certify(MARGIN)
        needed = solve(built.network.setting(GAMMA, delta=DELTA), "m", RISK, quantity="risk")
        found.append((needed.value, name, built, certified, needed))
    if not found:
        raise failure or NoSolution("no construction was found")
    best = min(found, key=lambda entry: entry[0])
    others = {name: m for m, name, *_ in found if name != best[1]}
    return Representation(best[2], best[3], best[4], others)
