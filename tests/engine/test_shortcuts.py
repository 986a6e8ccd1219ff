"""What makes searches quick changes nothing that they find, and what a search thinks of its candidates is true."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from boundcalc import Setting
from boundcalc.engine import refine, risks
from boundcalc.engine.evaluate import Desk
from boundcalc.engine.search import Search
from boundcalc.setting import preset

LARGE = {name: Setting(preset(name)) for name in ("bert", "llama")}


def _search(setting: Setting) -> Search:
    return Desk(setting).search("best")


@pytest.mark.parametrize("name", LARGE)
def test_pairs_of_levels_are_counted_as_piece_by_piece(name: str) -> None:
    curve = _search(LARGE[name]).curve
    points = curve.until(math.log(1e13))[:12]
    refinements = refine.Refinements(curve.items, refining=True)
    seen: list[Any] = [refinements._seen(point) for point in points]
    for before, here in zip(seen, seen[3:], strict=False):
        assert refinements._pair(before, here) == pytest.approx(sum(refinements._counts(before, here)), rel=1e-11)


@pytest.mark.parametrize("refining", [True, False])
@pytest.mark.parametrize("m", [10**5, 10**7, 10**9])
def test_no_chain_through_a_few_allocations_is_shorter(m: int, refining: bool) -> None:
    search = _search(Setting.of(depth=2, d=8, margin=1.0))
    points = search.curve.until(math.log(m))[4:24:3]
    start = math.exp(search.log_start)
    refinements = refine.Refinements(search.curve.items, refining=refining)

    def cost(links: Any) -> float:
        total, coarse = 0.0, start
        for link in links:
            total += coarse * math.sqrt(2 * link.adds / m)
            coarse = math.exp(link.point.log_scale)
        return total + 2 * coarse

    found = cost(refinements.best(start, points, m))
    chains = (chosen for size in range(len(points) + 1) for chosen in itertools.combinations(points, size))
    for chosen in chains:
        seen = [None, *map(refinements._seen, chosen)]
        links = [refinements._link(before, here) for before, here in itertools.pairwise(seen)]  # type: ignore[arg-type]
        assert found <= cost(links) * (1 + 1e-12)


@pytest.mark.parametrize("name", LARGE)
def test_noise_costs_what_the_search_thinks(name: str) -> None:
    """Far beyond where curves are tabulated the search was too hopeful by .2%."""
    desk = Desk(LARGE[name])
    for factor in (0.2, 3, 300):
        m = math.ceil(factor * math.exp(risks.uniform_half(desk.search("best"))[1].log_count))
        found = [each for each in desk.search("best").with_samples(m).risks() if each.strategy == "noise-margin"]
        assert len(found) == 1
        checked = desk.prove(found).log_value
        assert checked <= found[0].log_value + 1e-8
        assert checked == pytest.approx(found[0].log_value, abs=1e-4)
