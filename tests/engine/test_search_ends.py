"""Where the search stops, and what it refuses to start on."""

from __future__ import annotations

import math

import flint
import pytest

import boundcalc
from boundcalc import Setting, evaluate
from boundcalc.base.intervals import lower_float, upper_float
from boundcalc.engine.evaluate import Evaluator


@pytest.mark.parametrize(("depth", "m"), [(1, 9_000), (1, 10_000), (2, 30_000)])
def test_a_link_pays_until_the_log_count_is_twice_the_samples(depth: int, m: int) -> None:
    """Stopping at half the samples instead loses these bounds, which are below 1, and makes them jump with T."""
    values = [evaluate(Setting.of(depth=depth, seq_len=length, n_train=m, margin=1.0)) for length in (16, 64, 4096)]
    assert values[0].gap < 0.97
    assert values[0].gap <= values[1].gap <= values[2].gap


def test_an_enclosure_of_nothing_known_is_everything() -> None:
    assert upper_float(flint.arb("nan")) == math.inf
    assert lower_float(flint.arb("nan")) == -math.inf


def test_every_name_of_the_package_can_be_imported() -> None:
    names: dict[str, object] = {}
    exec("from boundcalc import *", names)
    assert set(boundcalc.__all__) <= set(names)


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
