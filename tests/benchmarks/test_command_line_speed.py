"""A command against the libraries it is made with, a sweep against hand-written NumPy: ratios of one run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from boundcalc.theorems import edelman2022

pytestmark = pytest.mark.benchmark

_ROUNDS = 15


def _least(*runs: Callable[[], object], rounds: int = _ROUNDS) -> list[float]:
    """The least time of each, taken in turns so that load hits all alike."""
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            started = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - started)
    return best


def _process(*words: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *words], capture_output=True, check=True)


def _report(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{text}\n")


def test_eval_takes_at_most_five_times_its_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    script = Path(sys.executable).with_name("boundcalc")  # as installed
    if not script.exists():
        pytest.skip("the boundcalc script is not installed beside this Python")
    libraries, command = _least(
        _process("-c", "import click, rich.table"), _process(str(script), "eval", "--depth", "2", "--T", "512")
    )
    _report(capsys, f"eval: {command * 1e3:.0f} ms, {command / libraries:.2f} times `import click, rich.table`")
    assert command <= 5 * libraries


def test_a_large_model_takes_at_most_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    """A second of a machine on which the libraries take 40 ms, with the search for the smallest m."""
    words = ("-m", "boundcalc", "eval", "--preset", "llama")
    libraries, command = _least(_process("-c", "import click, rich.table"), _process(*words), rounds=3)
    _report(capsys, f"eval --preset llama: {command:.2f} s, {command / libraries:.1f} times `import click, rich.table`")
    assert command <= 25 * libraries


def test_the_account_takes_at_most_three_times_the_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-m", "boundcalc", "eval", "--depth", "2", "--T", "512")
    bounds, account = _least(_process(*words), _process(*words, "--why"))
    _report(capsys, f"eval --why: {account * 1e3:.0f} ms, {account / bounds:.2f} times eval")
    assert account <= 3 * bounds


def _by_hand(C: np.ndarray | float, m: np.ndarray, T: np.ndarray | int, depth: int = 2, d: int = 64) -> np.ndarray:
    """A4, G1 and G2 for the edelman2022 preset, at gamma = 1 and delta = 0.05."""
    one, every = 17 * m, 17 * m * T

    def constant(n: np.ndarray) -> np.ndarray:
        wide = 2 * n * d + 1
        rho = 1 + 1 / np.log(wide)
        return rho * np.log(wide * rho**2 / (rho - 1))

    def stage(n: np.ndarray) -> np.ndarray:
        whole = np.cbrt(constant(n))
        score = np.minimum(np.cbrt(np.log(2 * n * T + 1)), whole)
        return C ** (2 / 3) * (score * C ** (4 / 3) + whole * C ** (2 / 3) + whole)

    r = C * C * (C + np.sqrt(1 + C * C))
    rest = sum(r ** (2 * j / 3) for j in range(1, depth))
    capacity = C**2 * (np.cbrt(np.log(2 * one + 1)) + stage(one) + stage(every) * rest) ** 3
    k = 17 / 32 * np.e * np.sqrt(2 * capacity / m)
    return 2 * k * (1.0853 + np.maximum(0, np.log(1 / (2 * k)))) + np.sqrt(np.log(1 / 0.05) / (2 * m))


@pytest.mark.parametrize("axes", ["m", "m and T", "m, T and C, each point its own"])
def test_array_sweeps_against_numpy_by_hand(capsys: pytest.CaptureFixture[str], axes: str) -> None:
    random = np.random.default_rng(0)
    gap = edelman2022.lambdify(depth=2, d=64, heads=1, gamma=1.0, delta=0.05)
    if axes == "m":
        m, T, C = np.floor(10 ** random.uniform(3, 12, 10**6)), 512, 1.0
    elif axes == "m and T":
        m, T, C = np.geomspace(1e3, 1e9, 1000).round()[:, None], np.geomspace(8, 1e6, 1000).round()[None, :], 1.0
    else:
        m, T = np.floor(10 ** random.uniform(3, 12, 10**6)), np.floor(10 ** random.uniform(1, 5, 10**6))
        C = random.uniform(1, 3, 10**6)  # C >= 1: the projections onto the ball are active, as A4 assumes
    ours = lambda: gap(m=m, T=T, C=C)  # noqa: E731
    np.testing.assert_allclose(ours(), _by_hand(C, m, T), rtol=1e-8)
    library, hand = _least(ours, lambda: _by_hand(C, m, T))
    _report(capsys, f"10^6 points, {axes}: {library * 1e3:.0f} ms, {hand / library:.2f} of the speed of NumPy by hand")
    assert hand / library >= 0.2
