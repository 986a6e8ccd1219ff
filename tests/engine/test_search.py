"""Where the search stops, and that no chain through its allocations is shorter."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from boundcalc import Setting, evaluate
from boundcalc.engine._chain import Chains
from boundcalc.engine.evaluate import Evaluator


@pytest.mark.parametrize("refining", [True, False])
@pytest.mark.parametrize("m", [10**5, 10**7, 10**9])
def test_no_chain_through_a_few_allocations_is_shorter(m: int, refining: bool) -> None:
    search = Evaluator(Setting.of(depth=2, d=8, margin=1.0)).search("best")
    points = search.curve.until(math.log(m))[4:24:3]
    start = math.exp(search.log_start)
    best = Chains(search.curve.items, refining=refining)

    def cost(links: Any) -> float:
        total, coarse = 0.0, start
        for link in links:
            total += coarse * math.sqrt(2 * link.adds / m)
            coarse = math.exp(link.point.log_scale)
        return total + 2 * coarse

    found = cost(best.best(start, points, m))
    chains = (chosen for size in range(len(points) + 1) for chosen in itertools.combinations(points, size))
    for chosen in chains:
        links = [best.link(before, here) for before, here in itertools.pairwise([None, *chosen]) if here is not None]
        assert found <= cost(links) * (1 + 1e-3)


@pytest.mark.parametrize(("depth", "m"), [(1, 9_000), (1, 10_000), (2, 30_000)])
def test_a_link_pays_until_the_log_count_is_twice_the_samples(depth: int, m: int) -> None:
    """Stopping at half the samples instead loses these bounds, which are below 1, and makes them jump with T."""
    values = [evaluate(Setting.of(depth=depth, seq_len=length, n_train=m, margin=1.0)) for length in (16, 64, 4096)]
    assert values[0].gap < 0.97
    assert values[0].gap <= values[1].gap <= values[2].gap


def test_many_samples_get_scales_fine_enough_for_them() -> None:
    """The bound falls like 1/sqrt(m) as far as m goes, and is not above what another m's allocations give."""
    setting = Setting.of(depth=2)
    base = Evaluator(setting).search("best")
    scaled: list[float] = []
    for m in (10**8, 10**12, 10**16, 10**18):
        found = evaluate(setting.but(n_train=m)).log10 * math.log(10)
        carried = min(each.log_value for each in base.with_samples(m).candidates("gap"))
        assert found <= carried + 1e-9
        scaled.append(found + math.log(m) / 2)
    assert max(scaled) - min(scaled) < 0.01
