"""What makes searches quick changes nothing that they find."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from boundcalc import Setting
from boundcalc.engine import allocate, refine, risks
from boundcalc.engine.evaluate import Desk
from boundcalc.engine.ground import Found
from boundcalc.engine.options import Item
from boundcalc.engine.search import Search
from boundcalc.setting import preset
from tests.laws.settings import settings

LARGE = {name: Setting(preset(name)) for name in ("bert", "llama")}


def _least(found: Iterator[Found]) -> float:
    return min((each.log_value for each in found), default=math.inf)


def _search(setting: Setting) -> Search:
    return Desk(setting).search("best")


def _samples(setting: Setting) -> list[int]:
    """As they are, and as many as bring the risk below 1, and far below."""
    search = _search(setting)
    nats = math.exp(min(risks.uniform_half(search)[1].log_count, 60.0)) if search.has_uniform else 1e4
    return [setting.sample.n_train, math.ceil(2 * nats), math.ceil(100 * nats)]


@pytest.mark.parametrize("setting", [*LARGE.values(), *settings("candidates that cannot win", 12)])
def test_candidates_that_are_not_made_would_not_win(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ghost strategy is left out only where it would not have been the best, however many samples there are."""
    if _search(setting).speaks_of_none:
        return
    found = [_least(_search(setting).with_samples(m).risks()) for m in _samples(setting)]
    monkeypatch.setattr(risks, "_beaten", lambda *_: False)
    assert found == [_least(_search(setting).with_samples(m).risks()) for m in _samples(setting)]


def test_some_candidates_are_not_made() -> None:
    search = _search(LARGE["llama"])
    assert {found.strategy for found in search.risks()} == {"uniform-margin"}
    assert "ghost-realizable" in {found.strategy for found in Desk(LARGE["llama"]).search("log-T").risks()}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("uniform", [True, False])
def test_pieces_that_are_alike_get_what_each_would_get_alone(
    name: str, uniform: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = _search(LARGE[name])
    items = search.items(10**6, uniform=uniform)
    assert len({item.like for item in items}) < len(items) / 4
    multipliers = (5.0, 20.0, 25.0, 30.0, 45.0)
    together = [allocate.allocate(items, log_lambda) for log_lambda in multipliers]
    monkeypatch.setattr(Item, "like", None)
    for point, log_lambda in zip(together, multipliers, strict=True):
        alone = allocate.allocate(items, log_lambda)
        assert [option and option.lemma for option in point.options] == [o and o.lemma for o in alone.options]
        assert point.shares == pytest.approx(alone.shares, rel=1e-13)
        assert point.log_count == pytest.approx(alone.log_count, rel=1e-14)


def test_options_that_shrink_more_slowly_are_not_carried_on() -> None:
    """Negative control: what is best near may be beaten far out by a cover of fewer numbers."""
    (item,) = _search(Setting.of(depth=1)).items(1, uniform=True)[-1:]
    best = min((o for o in item.heaviest if not o.power and o.curve is None), key=lambda o: o.log_a)
    assert allocate._slowest(best, item.heaviest)
    larger = best.farther(0.0)
    larger.log_a += 1.0
    assert not allocate._slowest(larger, [*item.heaviest, larger])
    powers = [option for option in item.heaviest if option.power]
    assert powers
    assert not any(allocate._slowest(option, [option]) for option in powers)


@pytest.mark.parametrize("name", LARGE)
def test_pairs_of_levels_are_counted_as_piece_by_piece(name: str) -> None:
    search = _search(LARGE[name])
    curve = search.curve(uniform=True)
    points = curve.until(math.log(1e13))[:12]
    refinements = refine.Refinements(curve.items)
    seen: list[Any] = [refinements._seen(point) for point in points]
    assert any(one is not None for each in seen for one in each.common)
    for before, here in zip(seen, seen[3:], strict=False):
        assert refinements._pair(before, here) == pytest.approx(sum(refinements._counts(before, here)), rel=1e-11)


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
