"""The front door: a function and T in, certified weights of the construction with the least bound out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.engine.solve import Solution, solve
from boundcalc.lab.represent.certify import Certified
from boundcalc.lab.represent.construct import KINDS, Construction, construct, possible_kinds, usable
from boundcalc.lab.represent.deep import Deep, deep
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.network import Network
from boundcalc.lab.represent.positions import Positions, compact, orthonormal
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

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays."""
        construction = self.construction
        function = construction.function
        return {
            "function": function.describe(),
            "structure": function.structure,
            "support": list(function.variables),
            "construction": construction.kind,
            "beta": construction.beta,
            "hidden_units": construction.network.blocks[0].w_1.shape[0],
            **_json(construction.network, self.certified),
            "samples": {"risk": RISK, "delta": DELTA, "m": self.needed.value, "others": self.others},
        }


@dataclass(frozen=True)
class Tower:
    """A certified function of functions.

    Attributes:
        deep: its levels and weights, a block each.
        certified: what was shown of all inputs.
        needed: the smallest m at which the best checked risk bound of the class with these norms is at most 0.05.
        left_out: how many functions of each level no later one reads.
    """

    deep: Deep
    certified: Certified
    needed: Solution
    left_out: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays."""
        return {
            "levels": [[function.describe() for function in level] for level in self.deep.levels],
            "left_out": list(self.left_out),
            "hidden_units": [block.w_1.shape[0] for block in self.deep.network.blocks],
            **_json(self.deep.network, self.certified),
            "samples": {"risk": RISK, "delta": DELTA, "m": self.needed.value},
        }


def _json(network: Network, certified: Certified) -> dict[str, Any]:
    return {
        "T": network.seq_len,
        "encoding": network.encoding.to_json(),
        "coherence": network.encoding.positions.coherence,
        "norms": network.norms.to_json()["budgets"],
        "certificate": certified.to_json(),
    }


def tower(levels: Sequence[Sequence[SparseFunction]], seq_len: int) -> Tower:
    """Certified weights for levels of functions of functions (`deep.deep`), and the samples their class needs."""
    found = deep(levels, seq_len)
    left_out = tuple(len(given) - len(kept) for given, kept in zip(levels, found.levels, strict=True))
    return Tower(found, found.certify(MARGIN), _needed(found.network), left_out)


def _needed(network: Network) -> Solution:
    """The smallest m with a risk bound of at most 0.05, of the class with exactly these norms, just below margin 1."""
    return solve(network.setting(GAMMA, delta=DELTA), "m", RISK, quantity="risk")


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
        needed = _needed(built.network)
        found.append((needed.value, name, built, certified, needed))
    if not found:
        raise failure or NoSolution("no construction was found")
    best = min(found, key=lambda entry: entry[0])
    others = {name: m for m, name, *_ in found if name != best[1]}
    return Representation(best[2], best[3], best[4], others)
