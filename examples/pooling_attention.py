"""One attention layer with a query of its own (S5), trained inside its class: a risk bound below 0.1 from 1,000 examples.

    python examples/pooling_attention.py [tiny]

Every example is 128 bits; its label is the conjunction of three of them. Row t is (p_t, +-1), p_t fixed points of a sphere in
16 dimensions. The layer reads out sum_t softmax(<q, x_t>) c (bit t): the value map is fixed in advance, the vector q of 17
numbers is trained in the ball |q| <= 40. The bound is for that whole class and was known before training. No torch.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boundcalc import BoundValue, Budget, Norms, Sample, Setting, evaluate
from boundcalc.setting import Architecture, Attention, Pool

Array = NDArray[np.float64]
PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""
READ, WITHIN, DELTA, GAMMA = 1.1, 40.0, 0.05, 1.0
"""c, the ball of q, and what was fixed for the bound."""


class Scale(NamedTuple):
    """Bits, dimensions of a position, examples, steps."""

    bits: int
    width: int
    m: int
    steps: int


SCALES = {"full": Scale(128, 16, 1000, 1500), "tiny": Scale(16, 8, 1000, 300)}


def positions(count: int, width: int, steps: int = 300) -> Array:
    """Points of the sphere that repel each other, ever more steeply; no data is looked at."""
    p = np.random.default_rng(5).standard_normal((count, width))
    for step in range(steps):
        p /= np.linalg.norm(p, axis=1, keepdims=True)
        close = (5 + 75 * step / steps) * (p @ p.T - 1)
        np.fill_diagonal(close, -np.inf)
        push = np.exp(close) @ p
        p -= 0.1 * (1 - step / steps) * push / np.abs(push).max()
    return p / np.linalg.norm(p, axis=1, keepdims=True)


def examples(scale: Scale, m: int, rng: np.random.Generator, relevant: Array) -> tuple[Array, Array]:
    """Bits and labels, +-1: half of the labels are +1, and the three bits are uniform given the label."""
    x = rng.choice([-1.0, 1.0], (m, scale.bits))
    y = rng.choice([-1.0, 1.0], m)
    patterns = np.array([[2.0 * (k >> i & 1) - 1 for i in range(3)] for k in range(7)])
    x[:, relevant.astype(int)] = np.where(y[:, None] > 0, 1.0, patterns[rng.integers(0, 7, m)])
    return x, y


def outputs(q: Array, p: Array, x: Array) -> tuple[Array, Array]:
    """The layer's outputs, and their gradients by q."""
    scores = p @ q[:-1] + q[-1] * x
    a = np.exp(scores - scores.max(axis=1, keepdims=True))
    a /= a.sum(axis=1, keepdims=True)
    f = (a * x).sum(axis=1)
    pull = a * (x - f[:, None])
    return READ * f, READ * np.concatenate([pull @ p, (pull * x).sum(axis=1)[:, None]], axis=1)


def train(scale: Scale, p: Array, x: Array, y: Array) -> Array:
    """Adam from the three bits that go with the label most, on the smallest margins, back into the ball after each step."""
    likely = np.argsort(-np.abs(y @ (x - x.mean(axis=0))))[:3]
    q = np.append(8 * p[likely].sum(axis=0), -1.5)
    first, second = np.zeros_like(q), np.zeros_like(q)
    for step in range(scale.steps):
        f, slopes = outputs(q, p, x)
        short = 20 * (1.06 - y * f)
        weights = (
            1 / (1 + np.exp(-short)) / len(y) + 0.3 * np.exp(short - short.max()) / np.exp(short - short.max()).sum()
        )
        gradient = -(weights * y) @ slopes
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        step_size = 0.15 * (1 - step / scale.steps) + 1e-3
        ahead = first / (1 - 0.9 ** (step + 1))
        q -= step_size * ahead / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-12)
        q *= min(1.0, WITHIN * (1 - 1e-9) / float(np.linalg.norm(q)))
    return q


def certify(scale: Scale) -> BoundValue:
    """The bound for the class, at margin training error 0."""
    radius = math.sqrt(2) * (1 + 1e-9)
    layers = (Attention(scale.width + 1, d_value=1, qk="fixed"), Pool("cls"))
    fixed = Budget(op=READ, distance=Budget(op=0.0))
    norms = Norms(budgets={"q": Budget(op=WITHIN), "W_V": fixed})
    architecture = Architecture(seq_len=scale.bits, input_radius=radius, layers=layers)
    return evaluate(Setting(architecture, norms, Sample(n_train=scale.m, delta=DELTA, margin=GAMMA)))


def run(scale: Scale, seed: int = 1) -> tuple[BoundValue, float, float]:
    """The bound, the least training margin and the test error."""
    rng = np.random.default_rng(seed)
    p = positions(scale.bits, scale.width)
    relevant = rng.choice(scale.bits, 3, replace=False).astype(float)
    x, y = examples(scale, scale.m, rng, relevant)
    q = train(scale, p, x, y)
    x_test, y_test = examples(scale, 20_000, rng, relevant)
    margin = float((y * outputs(q, p, x)[0]).min())
    return certify(scale), margin, float((y_test * outputs(q, p, x_test)[0] <= 0).mean())


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[dict[str, float], dict[str, float]]:
    """The risk bound and the test error."""
    del folder  # nothing is written
    bound, margin, error = run(SCALES[scale])
    risk = bound.risk if margin > GAMMA else 1.0  # it is about no margin errors
    return {"risk": risk}, {"risk": error}


if __name__ == "__main__":
    size = SCALES[sys.argv[1] if len(sys.argv) > 1 else "full"]
    bound, margin, error = run(size)
    more = certify(size._replace(m=2 * size.m))
    print(f"least training margin   {margin:.4f}   (gamma = {GAMMA:g})")
    print(f"test error              {error:.4f}")
    print(f"risk, from {size.m:5}        {bound.risk:.4f}   by {bound.risk_strategy}")
    print(f"risk, from {2 * size.m:5}        {more.risk:.4f}")
