"""How scores become attention weights: as data, by the constants that proofs need (L1, L2), and as arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.schema import Positive, check_fields, declare
from boundcalc.base.system import Number
from boundcalc.base.validate import choice
from boundcalc.layers.facts import Context

NORMALISERS = ("softmax", "softmax1", "sigmoid", "linear", "custom")
_NO_CONSTANT = {
    "cme": "its weights (k(K, K) + lam)^(-1) k(K, q) mix scores between keys, and their mass may grow like sqrt(T)",
    "sparsemax": "its l_inf -> l_1 Lipschitz constant grows with the size of the support",
    "entmax": "its l_inf -> l_1 Lipschitz constant grows with the size of the support",
    "hardmax": "it is not continuous in the scores",
    "sigmoid-logT": "the mass of its row is not bounded independently of T",
}


def _name(where: str, value: Any, options: tuple[str, ...] = ()) -> str:
    """One of the names; of a normaliser without a constant the reason."""
    if isinstance(value, str) and value in _NO_CONSTANT:
        fix = "Use softmax, softmax1, sigmoid or linear, or custom with your own (c, mu)."
        raise Unsupported(Refusal(f"normaliser {value!r}", _NO_CONSTANT[value], "a constant independent of T", fix))
    return choice(where, value, options)


@dataclass(frozen=True, slots=True)
class Normaliser:
    """How scores become weights.

    softmax, softmax1 ("plus one" in the denominator), sigmoid(s)/T, linear s/T, or custom with its own
    l_inf -> l_1 constant `c` and largest l_1 mass `mu`. Scores are divided by `temperature`; unset, it is
    1 for a joint score matrix and sqrt(d_head) for separate queries and keys.
    """

    name: Annotated[str, partial(_name, options=NORMALISERS)] = declare("softmax", "how scores become weights")
    temperature: Positive | None = declare(None, "what scores are divided by")
    c: Positive | None = declare(None, "Lipschitz constant of a normaliser of your own")
    mu: Positive | None = declare(None, "largest mass of a row of weights of a normaliser of your own")

    def __post_init__(self) -> None:
        check_fields(self, "normaliser ")
        if self.name == "custom" and None in (self.c, self.mu):
            raise InvalidSetting("normaliser 'custom' needs both c and mu")
        if self.name != "custom" and not self.c is self.mu is None:
            raise InvalidSetting(f"c and mu belong to normaliser 'custom', not to {self.name!r}")


def normaliser_constants(
    normaliser: Normaliser, temperature: Number, score_radius: Number, at: Context
) -> tuple[Number, Number]:
    """L1 and L2: the l_inf -> l_1 constant c and the largest l_1 mass mu of a row of weights."""
    ns = at.ns
    one = ns.number(1)
    if normaliser.name in ("softmax", "softmax1"):
        return (ns.number(2) if "L1" in at.published else one) / temperature, one
    if normaliser.name == "sigmoid":
        return one / (4 * temperature), one
    if normaliser.name == "linear":
        return one / temperature, score_radius / temperature
    return ns.number(normaliser.c or 0) / temperature, ns.number(normaliser.mu or 0)


def normalise(name: str, scores: Any, count: int, xp: Any) -> Any:
    """Weights of so many keys from scores, along the last dimension; scores of keys that are not seen are -inf."""
    if name == "softmax":
        return xp.softmax(scores, -1)
    if name == "softmax1":
        return xp.softmax(xp.concatenate([scores, xp.zeros_like(scores[..., :1])], -1), -1)[..., :-1]
    if name == "sigmoid":
        return xp.sigmoid(scores) / count
    if name == "linear":
        return xp.where(scores == -math.inf, 0.0, scores) / count
    raise InvalidSetting(f"normaliser {name!r} does not say how scores become weights, so it cannot be run")
