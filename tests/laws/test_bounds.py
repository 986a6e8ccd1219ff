"""Laws of every policy on random settings: what a bound may never do."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import Evaluator
from boundcalc.layers.base import weights_of
from boundcalc.setting import Architecture, Budget, Norms, Setting
from boundcalc.setting.norms import place_named
from boundcalc.statements.premise import no_member
from boundcalc.theorems import POLICIES
from tests.laws.settings import settings

NOISE = 0.1
"""Natural logs by which a search may do worse on an easier setting: scales and shares are found on grids."""
EXACT = 1e-9

Values = dict[str, BoundValue]
Change = Callable[[Setting, random.Random], Setting]


def values(setting: Setting, bounds: Sequence[str] | None = None) -> Values:
    """The checked bounds, of risks wherever the checkers confirm them."""
    found = map(Evaluator(setting, no_member).value, bounds or POLICIES)
    return {value.name: value for value in found if value.refusal is None}


def logs(value: BoundValue) -> tuple[float, float]:
    """Logs of the gap and risk bounds, uncapped; a risk bound of no network's is as good as any."""
    return value.log10 * math.log(10), value.log_risk if value.risk_refusal is None else -math.inf


# ------------------------------------------------------------------------------------------------ monotone


def smaller(setting: Setting, field: str, factor: float) -> Setting:
    """With a smaller number, where the architecture reads it."""
    architecture = setting.architecture
    return setting if architecture.unread(field) else setting.but(**{field: factor * getattr(architecture, field)})


EASIER: dict[str, Change] = {
    "more_samples": lambda s, rng: s.but(n_train=rng.choice((2, 10)) * s.sample.n_train),
    "wider_margin": lambda s, rng: s.but(margin=1.3 * s.sample.margin),
    "more_risk_of_failure": lambda s, rng: s.but(delta=min(0.9, 2 * s.sample.delta)),
    "fewer_training_errors": lambda s, rng: s.but(train_error=s.sample.train_error / 2),
    "shorter": lambda s, rng: s.but(seq_len=max(1, s.architecture.seq_len // 7)),
    "smaller_inputs": lambda s, rng: smaller(s, "input_radius", 0.8),
    "smaller_positions": lambda s, rng: smaller(s, "position_radius", 0.8),
    "every_norm_smaller": lambda s, rng: s.but(norms=s.norms.scaled(0.8)),
    "smaller_knob": lambda s, rng: s.but(C=0.8 * (s.norms.C or 0.0)),
}


def fell(setting: Setting, easier: Setting) -> bool:
    """Whether no policy's gap or risk bound grew (searches: beyond their noise)."""
    before, after = values(setting), values(easier)
    for name, value in before.items():
        room = NOISE if POLICIES[name].form == "search" else EXACT
        for old, new in zip(logs(value), logs(after[name]), strict=True):
            if new > old + room:
                return False
    return True


@pytest.mark.parametrize("name", EASIER)
def test_easier_settings_have_smaller_bounds(name: str) -> None:
    rng = random.Random(name)
    grown = [setting for setting in settings(name, 8) if not fell(setting, EASIER[name](setting, rng))]
    assert grown[:1] == []


def tightened(size: float) -> Iterator[tuple[str, Budget, Budget]]:
    """(norm, a budget, the same with that norm smaller)."""
    full = Budget(op=size, fro=1.5 * size, two_one=2 * size, one_one=3 * size, sup=size, row=size)
    for name, limit in {"op": 0.8, "fro": 1.2, "two_one": 1.6, "one_one": 2.5, "sup": 0.8, "row": 0.8}.items():
        yield name, full, replace(full, **{name: limit * size})
    plain = Budget(op=size, sup=size, row=size)
    yield "rank", replace(plain, rank=2), replace(plain, rank=1)
    yield "nuclear", replace(plain, nuclear=2 * size), replace(plain, nuclear=1.6 * size)
    yield "distance", replace(plain, distance=plain), replace(plain, distance=replace(plain, op=0.5 * size))


def test_each_norm_of_each_kind_counts_the_right_way() -> None:
    rng = random.Random(5)
    grown: list[str] = []
    for setting in settings(5, 15, budgets=False):
        weights = {weight.kind: weight for weight in weights_of(setting.architecture.stages, 1)}
        kind = rng.choice(sorted(weights))
        fit = [case for case in tightened(setting.norms.C or 1.0) if case[0] in weights[kind].limits]
        for name, *budgets in rng.sample(fit, min(3, len(fit))):
            before, after = (replace(setting.norms, budgets={kind: weights[kind].usable(budget)}) for budget in budgets)
            if not fell(replace(setting, norms=before), replace(setting, norms=after)):
                grown.append(f"{kind}.{name}")
    assert grown == []


def test_the_monotone_laws_see_growth() -> None:
    rng = random.Random(0)
    kept = [s for s in settings(6, 12) if s.norms.C and not s.architecture.variance_floor]  # which small norms miss
    assert any(not fell(EASIER["every_norm_smaller"](setting, rng), setting) for setting in kept)


def test_depth_counts_where_layers_do_not_shrink() -> None:
    for knob in (1.0, 2.0):
        for heads in (1, 2):
            found = [values(Setting.of(depth=depth, C=knob, heads=heads, n_train=10**12)) for depth in (1, 2, 3, 5)]
            for name in POLICIES.keys() & set.intersection(*map(set, found)):
                for shallow, deep in itertools.pairwise(logs(each[name]) for each in found):
                    assert all(low <= high + NOISE for low, high in zip(shallow, deep, strict=True))


# ------------------------------------------------------------------------------------------------ invariant


def differ(first: Setting, second: Setting, names: Sequence[str] | None = None) -> list[str]:
    """Policies whose bounds differ."""
    a, b = values(first, names), values(second, names)
    assert a.keys() == b.keys()
    pairs = {name: zip(logs(a[name]), logs(b[name]), strict=True) for name in a}
    return [name for name, pair in pairs.items() if any(abs(x - y) > EXACT for x, y in pair)]


HEADS = Setting.of(heads=3, d=12, depth=2, n_train=10**8, seq_len=100)


def per_head(sizes: tuple[float, ...], kind: str = "W_V") -> Setting:
    budgets = {f"{kind}[0,{h}]": Budget(op=size, two_one=1.5 * size) for h, size in enumerate(sizes)}
    return HEADS.but(norms=Norms(C=1.0, budgets=budgets))


@pytest.mark.parametrize("kind", ["W_V", "W_QK"])
def test_heads_may_be_listed_in_any_order(kind: str) -> None:
    for sizes in itertools.permutations((0.5, 1.0, 2.0)):
        assert differ(per_head((0.5, 1.0, 2.0), kind), per_head(sizes, kind)) == []
    assert "best" in differ(per_head((1.0, 1.0, 1.0), kind), per_head((1.0, 1.0, 1.3), kind))


def as_many_key_heads(setting: Setting) -> Setting:
    a = setting.architecture
    return setting if a.kv_heads is not None else setting.but(kv_heads=a.heads)


def layer_by_layer(setting: Setting) -> Setting:
    a = setting.architecture
    layers = Architecture(seq_len=a.seq_len, classes=a.classes, input_radius=a.input_radius, layers=a.stages)
    return replace(setting, architecture=layers)


def knob_spelt_out(setting: Setting) -> Setting:
    """A budget for each kind, block and head."""
    knob, budgets = setting.norms.C, dict[str, Budget]()
    for weight in weights_of(setting.architecture.stages, setting.architecture.seq_len):
        own = weight.usable(Budget(op=knob, two_one=knob, sup=knob, row=knob))
        heads = range(weight.copies) if weight.heads and setting.architecture.kv_heads is None else [None]
        budgets |= {place_named(weight.kind, weight.block, head): own for head in heads}
    return setting.but(norms=Norms(budgets=budgets))


@pytest.mark.parametrize("same", [as_many_key_heads, layer_by_layer, knob_spelt_out])
def test_other_ways_to_say_the_same_give_the_same(same: Callable[[Setting], Setting]) -> None:
    for setting in settings(same.__name__, 10, budgets=same is not knob_spelt_out):
        assert differ(setting, same(setting)) == []


# ------------------------------------------------------------------------------------------------ best, T-free


def test_best_is_the_least_of_the_same_quantity() -> None:
    for setting in settings(7, 60):
        found = values(setting)
        for value in found.values():
            for least, other in zip(logs(found["best"]), logs(value), strict=True):
                assert least <= other + 1e-12


def test_uniform_policies_do_not_depend_on_length() -> None:
    names = [name for name, policy in POLICIES.items() if not ({"T1", "T2", "Tpub"} & policy.lemmas or policy.laws)]
    assert {"T-free", "parameters"} <= set(names)
    compared = 0
    for setting in settings(8, 40):
        if setting.architecture.positions == "learned":
            continue
        assert differ(setting, setting.but(seq_len=10**9), names) == []
        compared += len(values(setting, names))
    assert compared > 40
    short, long = (values(Setting.of(d=1000, seq_len=t, n_train=10**8), ["closed"])["closed"] for t in (4, 10**9))
    assert logs(short) < logs(long)


def test_learned_positions_cost_more_with_length() -> None:
    short, long = (Setting.of("gpt2", depth=1, d=8, heads=1, eps=1.0, seq_len=t, C=0.2) for t in (4, 4000))
    for name in ("T-free", "parameters"):
        assert logs(values(short, [name])[name])[0] < logs(values(long, [name])[name])[0]


def test_without_weights_only_the_deviation_is_left() -> None:
    for setting in settings(9, 20, budgets=False):
        tiny = setting.but(norms=Norms(C=1e-200), margin=1.0)
        sample = tiny.sample
        deviation = math.sqrt(math.log(1 / sample.delta) / (2 * sample.n_train))
        for name, value in values(tiny).items():
            if name == "published":
                assert logs(value)[0] >= math.log(3 * deviation)
            elif name == "closed":
                assert logs(value)[0] == pytest.approx(math.log(deviation), abs=1e-6)
            else:
                assert logs(value)[0] == pytest.approx(math.log(deviation), abs=1e-9)
