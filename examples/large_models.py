"""What a certificate of a larger model would cost: the plan, and the cost of its steps measured here. Needs torch.

    python examples/large_models.py                  # the code on narrow models: seconds
    python examples/large_models.py full [--device cuda] [--steps 1] [--out large_models.json]

Two models with plans of Pick-to-Learn: a Vision Transformer for CIFAR-10 and a small language model. The code that certifies
is run as it would be (a prefix, picks, passes over candidates, the replay), on random data and for a few steps; seconds per
step and per scored example come from it, and the plan's total from these. Nothing is learned, and the certificate is thrown
away. docs/certificates.md is made from the JSON.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Values = dict[str, float]
PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""


class Plan(NamedTuple):
    """How a model is to be certified.

    Attributes:
        m: examples.
        prefix: those that the first training sees.
        first: its steps.
        rounds: of picks.
        picks: per round.
        steps: per round.
        batch: examples per step.
    """

    m: int
    prefix: int
    first: int
    rounds: int
    picks: int
    steps: int
    batch: int

    @property
    def trained(self) -> int:
        """Steps of one run."""
        return self.first + self.rounds * self.steps

    @property
    def scored(self) -> int:
        """Examples that the run scores: all that are left, before the first round and after each."""
        return sum(self.m - self.prefix - done * self.picks for done in range(self.rounds + 1))

    @property
    def again(self) -> tuple[int, int]:
        """Steps and scored examples of the replay: the picks and 64 others."""
        return self.trained, sum(64 + self.picks * (self.rounds - done) for done in range(self.rounds + 1))


WORDS, LENGTH = 4096, 128
"""Of the language model: its vocabulary, and the tokens of a document."""


def vision(width: int = 192, blocks: int = 12, heads: int = 3) -> Any:
    """A Vision Transformer on 32 x 32 images in patches of 4 x 4, ten classes."""
    import torch
    from torch import nn

    class Vision(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Conv2d(3, width, 4, stride=4)
            self.places = nn.Parameter(0.02 * torch.randn(64, width))
            block = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
            self.blocks = nn.TransformerEncoder(block, blocks, enable_nested_tensor=False)
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            rows = self.embed(x).flatten(2).transpose(1, 2) + self.places
            return self.head(self.norm(self.blocks(rows)).mean(1))

    return Vision()


def language(width: int = 256, blocks: int = 6, heads: int = 8, words: int = WORDS, length: int = LENGTH) -> Any:
    """A causal model of documents. Its answer is a score: by how much the mean loss of the document is below a threshold.

    "Right" is a loss below the threshold, fixed beforehand; answers are all 1.
    """
    import torch
    from torch import nn

    class Language(nn.Module):
        threshold = math.log(words)

        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(words, width)
            self.places = nn.Parameter(0.02 * torch.randn(length, width))
            block = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
            self.blocks = nn.TransformerEncoder(block, blocks, enable_nested_tensor=False)
            self.norm = nn.LayerNorm(width)

        def forward(self, x: Any) -> Any:
            size = x.shape[1]
            later = torch.full((size, size), -math.inf, device=x.device).triu(1)
            rows = self.norm(self.blocks(self.embed(x) + self.places[:size], mask=later, is_causal=True))
            logits = rows[:, :-1] @ self.embed.weight.T
            losses = nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten(), reduction="none")
            return self.threshold - losses.reshape(len(x), -1).mean(1)

    return Language()


def _images(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.standard_normal((n, 3, 32, 32), dtype=np.float32), rng.integers(0, 10, n)


def _documents(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.integers(0, WORDS, (n, LENGTH)), np.ones(n, dtype=np.int64)


class Case(NamedTuple):
    """A model, its plan, and data of its shape."""

    make: Callable[[], Any]
    draw: Callable[[np.random.Generator, int], tuple[Any, Any]]
    plan: Plan
    loss: Callable[[Any, Any], Any] | None = None


CASES = {
    "ViT on CIFAR-10": Case(vision, _images, Plan(50_000, 10_000, 8000, 16, 64, 300, 128)),
    "small GPT": Case(
        language, _documents, Plan(100_000, 50_000, 40_000, 8, 64, 500, 16), lambda scores, _: -scores.mean()
    ),
}


def measure(name: str, device: str = "cpu", steps: int = 1) -> dict[str, Any]:
    """Cost of a step and of scoring, from the code that certifies, and what the plan would cost at that."""
    import torch

    from boundcalc import Data, ModuleLearner, pick_to_learn
    from boundcalc.lab.train.pickers import CHUNK, PickRule
    from boundcalc.predictors.plans import shared, stops

    case = CASES[name]
    plan = case.plan
    spent: dict[str, list[float]] = {"step": [], "score": []}

    def timed(kind: str, run: Callable[[], Any]) -> Any:
        if device != "cpu":
            torch.cuda.synchronize()
        started = time.process_time() if device == "cpu" else time.perf_counter()
        found = run()
        if device != "cpu":
            torch.cuda.synchronize()
        spent[kind].append((time.process_time() if device == "cpu" else time.perf_counter()) - started)
        return found

    class Timed(ModuleLearner):
        def _step(self, state: Any, x: Any, y: Any) -> float:
            return timed("step", lambda: super(Timed, self)._step(state, x, y))

        def scores(self, state: Any, examples: Data) -> Any:
            return timed("score", lambda: super(Timed, self).scores(state, examples))

    rule = PickRule(batch=plan.batch, whole=1, prefix_steps=steps, prefix_loss=0.0, round_steps=steps, round_loss=0.0)
    learner = Timed(
        rule=rule, device=device, make=case.make, name=f"large_models.py:{case.make.__name__}", loss=case.loss
    )
    data = Data(*case.draw(np.random.default_rng(0), plan.batch + 72))
    members = shared(stops(72, [8], (8,), prefix=plan.batch), 0.05)
    pick_to_learn(learner, data, members, 0.05)
    module = case.make()
    weights = sum(value.numel() for value in module.parameters())
    # the first step also plans memory and kernels
    step = min(spent["step"][1:] or spent["step"])
    scored = min(spent["score"]) / CHUNK
    total = sum(
        count * cost for count, cost in ((plan.trained + plan.again[0], step), (plan.scored + plan.again[1], scored))
    )
    return {
        "model": name,
        "device": device if device == "cpu" else torch.cuda.get_device_name(),
        "parameters": weights,
        "state_bytes": 16 * weights,
        "m": plan.m,
        "prefix": plan.prefix,
        "picks": plan.rounds * plan.picks,
        "steps": plan.trained,
        "batch": plan.batch,
        "scored": plan.scored,
        "step_seconds": step,
        "scored_seconds": scored,
        "peak_bytes": _peak(device),
        "hours": total / 3600,
    }


def _peak(device: str) -> int:
    """Of the device's memory; on a CPU, of the process."""
    import torch

    if device != "cpu":
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


HEADS = (
    "model",
    "weights",
    "m (prefix)",
    "picks",
    "steps (batch)",
    "scored",
    "s per step",
    "ms per scored",
    "memory",
    "one run and its replay",
)


def table(rows: list[dict[str, Any]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(HEADS)} |", f"| --- |{' ---: |' * (len(HEADS) - 1)}"]
    for row in rows:
        cells = (
            row["model"],
            f"{row['parameters'] / 1e6:.1f}M",
            f"{row['m']:,} ({row['prefix']:,})",
            f"{row['picks']:,}",
            f"{row['steps']:,} ({row['batch']})",
            f"{row['scored'] / 1e6:.2f}M",
            f"{row['step_seconds']:.2f}",
            f"{1000 * row['scored_seconds']:.1f}",
            f"{row['peak_bytes'] / 2**30:.1f} GiB",
            f"{row['hours']:.0f} h",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Seconds of a step, which are more than none; `tiny` runs narrow models."""
    del folder  # nothing is written
    global WORDS, LENGTH
    if scale == "tiny":
        WORDS, LENGTH = 64, 16
        CASES["ViT on CIFAR-10"] = Case(lambda: vision(12, 1, 2), _images, Plan(500, 100, 80, 2, 8, 30, 8))
        CASES["small GPT"] = Case(
            lambda: language(16, 1, 2, WORDS, LENGTH),
            _documents,
            Plan(500, 100, 80, 2, 8, 30, 2),
            CASES["small GPT"].loss,
        )
    rows = [measure(name) for name in CASES]
    return {row["model"]: row["step_seconds"] for row in rows}, {row["model"]: 0.0 for row in rows}


def _option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


if __name__ == "__main__":
    if "full" not in sys.argv:
        for name, seconds in main("tiny")[0].items():
            print(f"{name}, narrow: {seconds:.4f} s per step")
    else:
        import torch

        torch.set_num_threads(1)
        made = [measure(name, _option("--device", "cpu"), int(_option("--steps", "1"))) for name in CASES]
        if "--out" in sys.argv:
            Path(_option("--out", "")).write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        print(table(made))
