"""How much quicker the batched exact path is than a plain loop: ratios measured in one run, one thread, CPU time.

    pytest tests/benchmarks/test_training_speed.py -s

The other side is what one would write first: `nn.TransformerEncoderLayer` (d = 64, 16 heads, LayerNorm) on all
T + 1 rows, one trial at a time, with torch's Adam. Ours is the same model, with the same LayerNorm, in a stack.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from boundcalc.lab.train._bits import two_sided  # noqa: E402
from boundcalc.lab.train.optim import StackedOptimiser  # noqa: E402
from boundcalc.lab.train.parameters import Init  # noqa: E402
from boundcalc.lab.train.stack import Stack, losses  # noqa: E402
from boundcalc.lab.train.tasks import BooleanTask  # noqa: E402
from boundcalc.lab.train.trial import Optimisation, model_for  # noqa: E402
from tests.benchmarks.timing import least  # noqa: E402

pytestmark = pytest.mark.benchmark

D, HEADS, FF = 64, 16, 256
STACK = {16: 16, 256: 16}


def in_turn(*sides: tuple[Callable[[], Any], int]) -> list[float]:
    """CPU seconds per call of several things, each repeated so often."""
    runs = [lambda step=step, repeats=repeats: [step() for _ in range(repeats)] for step, repeats in sides]
    least(*runs, rounds=1)
    times = least(*runs, rounds=6, clock=time.process_time)
    return [seconds / repeats for seconds, (_, repeats) in zip(times, sides, strict=True)]


def plain_loop(T: int, m: int) -> tuple[Callable[[], Any], int]:
    """A step of one trial with torch's own layer, and how often to take it."""
    layer = torch.nn.TransformerEncoderLayer(D, HEADS, FF, 0.0, "gelu", batch_first=True)
    positions = torch.nn.Parameter(0.1 * torch.randn(T + 1, D))
    embedding, readout = torch.nn.Embedding(3, D), torch.nn.Linear(D, 1)
    weights = [positions, *embedding.parameters(), *layer.parameters(), *readout.parameters()]
    optimiser = torch.optim.Adam(weights, lr=1e-3)
    x = torch.cat([torch.full((m, 1), 2), torch.randint(0, 2, (m, T))], 1)
    y = torch.randint(0, 2, (m,)).float()

    def step() -> None:
        optimiser.zero_grad()
        scores = readout(layer(embedding(x) + positions)[:, 0])[:, 0]
        torch.nn.functional.binary_cross_entropy_with_logits(scores, y).backward()
        optimiser.step()

    return step, 1 if m * T > 4_000 else 10


def batched(T: int, m: int) -> tuple[Callable[[], Any], int]:
    """A step of a stack, and how often to take it."""
    task = BooleanTask(T=T, s=3)
    architecture = model_for(task, d=D, heads=HEADS, d_ff=FF, normalisation="layernorm")
    count = STACK[m]
    generators = [torch.Generator().manual_seed(seed) for seed in range(count)]
    stack = Stack.fresh(architecture, task.shape, Init(), generators)
    optimiser = StackedOptimiser(stack.trained, Optimisation())
    sides = two_sided(torch.randint(0, 2, (count, m, T)), torch.float32)
    y = torch.randint(0, 2, (count, m))

    def step() -> None:
        optimiser.zero_grad()
        losses(task.shape, stack(sides), y).mean(1).sum().backward()
        optimiser.step()

    return step, 10


def needed_operations(T: int, m: int) -> float:
    """Floating-point operations of the products of one step of one trial (forward, and both gradients)."""
    columns = HEADS + D
    tables = 3 * 2 * T * D * columns
    mixing = 2 * 2 * (2 * m) * T * columns  # bits need no gradient
    rows = 3 * 2 * m * (D * D + 2 * D * FF)
    return float(tables + mixing + rows)


def large_product() -> tuple[Callable[[], Any], int]:
    """2 * 1024^3 operations, as quickly as this machine can."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return (lambda: a @ b), 3


def where_time_goes(step: Callable[[], Any]) -> str:
    """Shares of a step's time, from torch's profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(10):
            step()
    events = [event for event in profile.key_averages() if event.key.startswith("aten::")]
    total = sum(event.self_cpu_time_total for event in profile.key_averages())

    def share(*names: str) -> float:
        return sum(event.self_cpu_time_total for event in events if event.key in names) / total

    products = share("aten::bmm", "aten::baddbmm", "aten::mm", "aten::addmm")
    calls = sum(event.count for event in events) // 10
    return f"products {products:.0%}, the optimiser {share('aten::_fused_adam_'):.0%}; {calls} calls"


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


RATIOS = {(256, 64): 150, (256, 256): 1000, (256, 512): 2500, (16, 64): 43, (16, 256): 217, (16, 512): 575}


@pytest.mark.parametrize(("m", "T"), RATIOS)
def test_a_step_against_the_plain_loop(m: int, T: int) -> None:
    """In small batches memory traffic and the cost of a call count more than products (docs/learning.md)."""
    step, repeats = batched(T, m)
    stack, theirs, product = in_turn((step, repeats), plain_loop(T, m), large_product())
    ours = stack / STACK[m]
    share = needed_operations(T, m) / ours * product / (2 * 1024**3)
    print(
        f"\nT = {T}, m = {m}: {theirs / ours:.0f} times the plain loop, {share:.0%} of the peak of one core "
        f"({1e6 * ours:.0f} us per step and trial; {where_time_goes(step)})"
    )
    assert theirs / ours >= RATIOS[m, T]
    assert share >= 0.3 or m == 16 or T == 64
