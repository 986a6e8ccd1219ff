"""One attention layer with a query of its own (S5), trained inside its class: a risk bound that says something.

    python examples/pooling_attention.py [tiny]

Every example is 128 bits; its label is the conjunction of three of them. Row t is (p_t, +-1), p_t fixed points of a sphere in
20 dimensions. The layer reads out sum_t softmax(<q, x_t>) c (bit t): the value map is fixed in advance, the vector q of 21
numbers is trained in the ball |q| <= 80. The bound is for that whole class and was known before training. No torch.
`boundcalc train conjunction --T 128 --m 1000 --certify norms` chooses among several such classes, and pays for it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boundcalc import BoundValue, Data, evaluate
from boundcalc.predictors.pooling import PoolingClass, PoolingNetwork, margin_errors
from boundcalc.predictors.pooling_search import train

PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""
DELTA = 0.05


class Scale(NamedTuple):
    """The class and the number of examples."""

    cls: PoolingClass
    m: int


SCALES = {"full": Scale(PoolingClass(128, 20, 80.0), 1000), "tiny": Scale(PoolingClass(16, 8, 40.0), 1000)}


def examples(bits: int, m: int, rng: np.random.Generator, relevant: np.ndarray) -> Data:
    """Bits and labels: half of the labels are 1, and the three bits are uniform given the label."""
    x = rng.integers(0, 2, (m, bits), dtype=np.uint8)
    y = rng.integers(0, 2, m)
    patterns = np.array([[k >> i & 1 for i in range(3)] for k in range(7)])
    x[:, relevant] = np.where(y[:, None] > 0, 1, patterns[rng.integers(0, 7, m)])
    return Data(x, y)


def certify(scale: Scale) -> BoundValue:
    """The bound for the class, at margin training error 0."""
    return evaluate(scale.cls.setting(scale.m, DELTA))


def run(scale: Scale, seed: int = 1) -> tuple[BoundValue, int, float]:
    """The bound, how many margins are at most gamma, and the test error."""
    rng = np.random.default_rng(seed)
    cls = scale.cls
    relevant = rng.choice(cls.bits, 3, replace=False)
    data = examples(cls.bits, scale.m, rng, relevant)
    network, weights = PoolingNetwork(cls.bits, cls.width, cls.read), {"q": train(cls, data)}
    test = examples(cls.bits, 20_000, rng, relevant)
    error = float((network.scores(weights, test) <= 0).mean())
    return certify(scale), margin_errors(network, weights, data, cls.margin), error


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[dict[str, float], dict[str, float]]:
    """The risk bound and the test error."""
    del folder  # nothing is written
    bound, short, error = run(SCALES[scale])
    risk = bound.risk if not short else 1.0  # it is about no margin errors
    return {"risk": risk}, {"risk": error}


if __name__ == "__main__":
    size = SCALES[sys.argv[1] if len(sys.argv) > 1 else "full"]
    bound, short, error = run(size)
    more = certify(size._replace(m=2 * size.m))
    print(f"margins at most gamma   {short} of {size.m}   (gamma = {size.cls.margin:g})")
    print(f"test error              {error:.4f}")
    print(f"risk, from {size.m:5}        {bound.risk:.4f}   by {bound.risk_strategy}")
    print(f"risk, from {2 * size.m:5}        {more.risk:.4f}")
