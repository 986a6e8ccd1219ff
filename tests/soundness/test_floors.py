"""Floors: members built as weights, their norms and outputs; counts against simulation; never above a bound;
forgeries."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb

from boundcalc import Budget, Norms, Setting, compare
from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.floors import WAYS, floor_of, too_few_samples
from boundcalc.proof.floor import Floor, check_floor, read_floor
from boundcalc.proof.second._floors import derive_floor
from boundcalc.proof.second._numbers import Refused
from boundcalc.statements.floors import A, B, C, D, E, N
from boundcalc.statements.floors import _residual as residual
from boundcalc.statements.floors.base import Room, refusal
from boundcalc.statements.floors.counting import (
    CELLS,
    _bends,  # pyright: ignore[reportPrivateUsage]
    _chance_of_length,  # pyright: ignore[reportPrivateUsage]
    _mean_deviation,
    _most_unseen,
    _tail,  # pyright: ignore[reportPrivateUsage]
    opposite,
)
from boundcalc.testing._drawing import Array, Parameters
from tests.laws.settings import edelman, with_norms
from tests.laws.settings import small as small_preset
from tests.recorded.record import TABLE
from tests.soundness.members import members_of
from tests.soundness.network import outputs, outside


def setting(**changes: Any) -> Setting:
    return Setting.of(
        "edelman", **{"depth": 1, "C": 1.0, "d": 16, "seq_len": 40, "n_train": 10**6, "margin": 0.5, **changes}
    )


small = partial(small_preset, depth=3, n_train=10**4)

CASES = {
    "N of bert": (small("bert", margin=3.0), N(9)),
    "N of gpt2": (small("gpt2", C=0.3, margin=0.2), N(7)),
    "N of gpt2, 16 bits": (small("gpt2", C=0.7, bits=16, margin=0.2), N(9)),
    "N of llama": (small("llama", C=0.4), N(5)),
    "N of vit": (small("vit", C=0.8), N(6)),
    "N of vit, mean": (small("vit", readout="mean", heads=1), N(4)),
    "N with balls": (small("bert", normalisation="ball", C=0.9), N(4)),
    "N without normalisation": (small("gpt2", normalisation="none", C=0.9), N(3)),
    "N with own norms": (
        replace(
            small("bert", margin=0.5),
            norms=Norms(
                C=1.5,
                budgets={
                    "embedding": Budget(row=0.2, fro=3.0),
                    "W_V[0,0]": Budget(op=0.9, one_one=2.0),
                    "W_V[1]": Budget(nuclear=0.5),
                    "W_O": Budget(fro=1.1),
                    "W_O[2]": Budget(op=1.0, rank=0),
                    "norm_ffn.gain[2]": Budget(sup=0.3),
                },
            ),
        ),
        N(9),
    ),
    "A": (setting(), A(15, 24)),
    "A with radius": (setting(input_radius=0.8, margin=0.2), A(9, 22)),
    "B": (setting(depth=2), B(15, 0.35)),
    "B with radius": (setting(input_radius=0.8, margin=0.2), B(9, 0.3)),
    "B of depth 4": (setting(depth=4, C=0.7, margin=0.02), B(12, 0.4)),
    "C": (setting(C=2.0), C(3, 12, 0.8, 21)),
    "D": (setting(depth=2, C=2.0), D(3, 12, 0.6, 0.8, 21)),
    "D at depth 1, mean": (setting(C=2.0, readout="mean"), D(2, 13, 0.55, 0.7, 20)),
    "E": (setting(depth=2, C=2.5), E(12, 28, 6, 0.99)),
    "E of depth 4": (setting(depth=4, C=2.0), E(15, 30, 5, 0.98)),
    "two heads": (setting(heads=2, C=2.0), C(2, 13, 0.7, 21)),
    "no balls": (setting(depth=2, C=2.0, normalisation="none", margin=3.0), D(2, 13, 0.6, 0.8, 20)),
    "own norms": (
        replace(
            setting(depth=2),
            norms=Norms(
                C=1.5,
                budgets={
                    "W_QK": Budget(op=1.2, two_one=2.0, two_one_t=3.0),
                    "W_V[0]": Budget(op=0.9, one_one=2.0),
                    "W_1": Budget(fro=1.1),
                },
            ),
        ),
        D(2, 13, 0.6, 0.8, 20),
    ),
}


def margins(about: Setting, weights: Parameters, inputs: list[Array]) -> Array:
    """The first output, or by how much it is above the others."""
    out = outputs(about, weights, inputs)
    return out[:, 0] - out[:, 1:].max(axis=1) if out.shape[1] > 1 else out[:, 0]


def assert_member(about: Setting, weights: Parameters, inputs: list[Array]) -> None:
    """Every norm within its budget, stored weights powers of two, rows no longer than they may be."""
    a = about.architecture
    assert outside(about, weights) == set()
    assert a.bits is None or {0.5} >= {x for w in weights.values() for x in np.frexp(abs(w[w != 0]))[0]}
    assert a.vocabulary or np.linalg.norm(inputs, axis=-1).max() <= a.input_radius * (1 + 1e-12)


@pytest.mark.parametrize("name", CASES)
def test_members_are_in_the_class_and_take_both_values(name: str) -> None:
    """Norms by the certified routine, outputs by the library's own forward pass, on random choices of signs."""
    about, construction = CASES[name]
    room = Room(FLOAT, about)
    assert refusal(about) is None
    assert construction.unfit(room) is None
    cells, pairs = construction.cells(room), construction.mirrored(room)
    high, low = construction.output(room, 1), construction.output(room, -1)
    most, least = construction.furthest(room, 1), construction.furthest(room, -1)
    rng = np.random.default_rng(1)
    for _ in range(3):
        signs = rng.choice([-1, 1], cells)
        weights, inputs = members_of(Floor(about, construction, "F3" if pairs else "F1", 0.0), list(signs))
        if pairs:  # partners count with the other sign
            signs = np.concatenate([signs, -signs])
        assert len(inputs) == len(signs)
        assert_member(about, weights, inputs)
        chosen = rng.choice(len(inputs), min(len(inputs), 40), replace=False)
        values = margins(about, weights, [inputs[i] for i in chosen])
        exact = isinstance(construction, A | B | C | D | N)
        for value, sign in zip(values, signs[chosen], strict=True):
            if exact:
                assert value == pytest.approx(high if sign > 0 else low, abs=1e-12, rel=1e-12)
            assert value >= high - 1e-12 * max(1, high) if sign > 0 else value <= low + 1e-12 * max(1, -low)
            assert value <= most + 1e-12 * max(1, most) if sign > 0 else value >= least - 1e-12 * max(1, -least)
    assert high > low


def test_the_mean_deviation_is_exact() -> None:
    """Against the sum of all cases, and de Moivre's form of it for large samples."""
    for m, cells in ((5, 3), (10, 4), (7, 11), (60, 13), (200, 7), (101 * 64, 64), (10**15 + 7, 63), (10**18, 2)):
        with mpmath.workdps(60):
            p, v = mpmath.mpf(1) / cells, m // cells + 1
            exact = 2 * v * (1 - p) * mpmath.binomial(m, v) * p**v * (1 - p) ** (m - v) / m
            if m <= 200:
                chances = [mpmath.binomial(m, k) * p**k * (1 - p) ** (m - k) for k in range(m + 1)]
                exact = mpmath.fsum(each * abs(mpmath.mpf(k) / m - p) for k, each in enumerate(chances))
            certain = _mean_deviation(INTERVAL, m, cells)
            assert certain < arb(mpmath.nstr(exact * (1 + mpmath.mpf("1e-30")), 50))
        assert float(certain) == pytest.approx(float(exact), rel=1e-12)
        assert _mean_deviation(FLOAT, m, cells) == pytest.approx(float(exact), rel=1e-6)


PRINTED = [
    setting(n_train=20_000),
    setting(depth=2, n_train=10**5, d=64),
    setting(depth=4, C=0.5, margin=0.5**10, d=34, n_train=20_000),
    setting(C=2.0, d=24),
    setting(depth=2, C=2.0, d=24),
    setting(depth=4, C=2.0, d=12),
    small("gpt2", vocabulary=60, C=0.6, margin=0.2),
    small("bert", vocabulary=60),
    small("vit", d_patch=24),
]


@pytest.mark.parametrize("about", PRINTED)
def test_a_network_exceeds_what_is_printed(about: Setting) -> None:
    """Samples are drawn, for each a network is built and run.

    Its gap is above the floor more often than delta allows.
    """
    floor = floor_of(about)
    assert floor is not None
    rng, m, n = np.random.default_rng(5), about.sample.n_train, vars(floor.construction).get("n", 0)
    pairs = floor.by in ("F2", "F3")
    cells = floor.construction.cells(Room(FLOAT, about)) * (2 if pairs else 1)
    above, draws = 0, 40
    for draw in range(draws):
        shares = rng.multinomial(m, np.full(cells, 1 / cells)) / m
        signs = np.where(shares > 1 / cells, 1.0, -1.0)
        if pairs:
            moved = shares[: cells // 2] - shares[cells // 2 :]
            signs = np.sign(moved) if floor.by == "F3" else moved * math.sqrt(n) / np.linalg.norm(moved)
        weights, inputs = members_of(floor, list(signs))
        if not draw:
            assert_member(about, weights, inputs)
        lost = np.clip(1 - margins(about, weights, inputs) / about.sample.margin, 0, 1)
        above += float((1 / cells - shares) @ lost) >= floor.value
    assert above > 2 * about.sample.delta * draws


@pytest.mark.parametrize("about", PRINTED[::2])
def test_a_network_errs_on_what_the_sample_misses(about: Setting) -> None:
    """R1: of samples of rare cells more than delta leave as many unseen as the floor says; the network errs on these
    alone."""
    floor = floor_of(about, "risk")
    assert floor is not None
    rng, m = np.random.default_rng(6), about.sample.n_train
    rare = floor.construction.cells(Room(FLOAT, about)) - 1
    most, seen = 0.0, np.empty(0)
    for p in (tenth / (10 * m) for tenth in range(3, 20)):
        seen = rng.multinomial(m, [1 - rare * p, *[p] * rare], size=4000) > 0
        most = max(most, ((rare + 1 - seen.sum(axis=1)) * p >= floor.value * (1 - 1e-9)).mean())
    weights, inputs = members_of(floor, list(np.where(seen[0], 1.0, -1.0)))
    assert_member(about, weights, inputs)
    values = margins(about, weights, inputs)
    assert ((values > about.sample.margin) == seen[0]).all()
    assert ((values < 1e-12) == ~seen[0]).all()
    assert most > 0.9 * about.sample.delta


@pytest.mark.parametrize("n", [4, 10, 40])
def test_the_parts_of_weights_on_a_sphere(n: int) -> None:
    """F2: three moments of what psi lacks are above their integrals, and close; the chance of a length is exact."""
    density = 2 * mpmath.gamma(n / 2) / mpmath.gamma((n - 1) / 2) / mpmath.sqrt(mpmath.pi)
    for steep in (1.0, 3.0):

        def odd(t: float, steep: float = steep) -> float:
            return min(0.5, steep * t)

        def mean(power: int, of: int, steep: float = steep) -> Any:
            def value(t: Any) -> Any:
                return t**power * (steep * t - min(0.5, steep * t)) ** of * (1 - t * t) ** ((n - 3) / 2)

            return density * mpmath.quad(value, [0, 0.5 / steep, 1])

        exact = n * mean(1, 1), n * mean(2, 2), mean(0, 2)
        for bound, true in zip(_bends(FLOAT, n, odd, steep, CELLS), exact, strict=True):
            assert true <= bound <= 1.04 * true + 1e-3
    for a in (0.5, math.sqrt(n), 2 * math.sqrt(n)):
        exact = mpmath.gammainc(n / 2, a * a / 2, regularized=True)
        assert _chance_of_length(FLOAT, n, a) == pytest.approx(float(exact), rel=1e-12)


def test_the_tail_of_a_gaussian() -> None:
    """F3: below the chance, and close to it."""
    for z in np.linspace(0, 6, 61):
        assert 0.98 <= _tail(FLOAT, z) / float(mpmath.ncdf(-z)) <= 1 + 1e-14


@pytest.mark.parametrize(("pairs", "m", "delta"), [(30, 10**6, 0.05), (400, 40_000, 0.05), (200, 20_000, 0.2)])
def test_the_quantile_of_opposite_cells(pairs: int, m: int, delta: float) -> None:
    """F3 by simulation: the gap of the best signs exceeds the floor more often than delta; the floor is above its mean.

    Where cells have other losses than the two numbers, as far off as is allowed and to the worse side, it does so too.
    """
    high, low, loose = 0.9, 0.2, 0.05
    rng = np.random.default_rng(4)
    shares = rng.multinomial(m, np.full(2 * pairs, 0.5 / pairs), size=3000) / m
    moved = shares[:, :pairs] - shares[:, pairs:]
    two = (high - low) / 2 * abs(moved).sum(axis=1)
    more, less = (shares[:, :pairs] + shares[:, pairs:] + way * abs(moved) for way in (1, -1))
    even = 1 / pairs
    worse = two - loose / 2 * (np.maximum(even - more, 0) + np.maximum(less - even, 0)).sum(axis=1)
    for gaps, off in ((two, 0.0), (worse, loose)):
        floor = opposite(FLOAT, pairs, high, low, off, m, delta)
        assert floor is not None
        assert (gaps > floor).mean() > delta
        assert off or floor > two.mean()


@pytest.mark.parametrize(("rare", "p", "m"), [(1, 0.3, 4), (3, 0.2, 5), (7, 0.1, 9), (12, 0.05, 30)])
def test_the_chance_of_unseen_cells(rare: int, p: float, m: int) -> None:
    """R1: r cells or more are unseen with a chance above delta and r + 1 are not, by a walk over how many are seen."""
    seen = [1.0] + [0.0] * rare
    for _ in range(m):
        seen = [
            (seen[k] * (1 - (rare - k) * p)) + (seen[k - 1] * (rare - k + 1) * p if k else 0) for k in range(rare + 1)
        ]
    missed = [arb(1 - j * p) ** m for j in range(1, rare + 1)]
    for delta in (0.01, 0.05, 0.3, 0.7):
        r = _most_unseen(rare, missed, arb(delta))
        unseen = [sum(seen[: rare - k + 1]) for k in range(rare + 2)]
        assert r == max(k for k in range(rare + 1) if unseen[k] > delta)


@pytest.mark.parametrize(
    ("about", "construction"),
    [
        (setting(input_radius=0.8, C=2.0, normalisation="none"), A(9, 22)),
        (setting(depth=3, C=1.3, input_radius=0.8, normalisation="none"), B(9, 0.35)),
        CASES["B of depth 4"],
    ],
)
def test_the_slope_of_weights_on_a_sphere(about: Setting, construction: A | B) -> None:
    """F2: outputs rise with w, at most as steeply as is said, and nearly that steeply somewhere."""
    found = construction.sphere(Room(FLOAT, about))
    assert found is not None
    _, curve, steep, radius = found
    values = np.array([curve(radius * k / 500) for k in range(-500, 501)])
    rises = np.diff(values) * 500 / radius
    assert rises.min() >= 0
    assert 0.9 * steep <= rises.max() <= steep * (1 + 1e-9)


def test_both_checkers_derive_the_same_floor() -> None:
    ways: set[str] = set()
    for about in (*(each for each, _ in CASES.values()), PRINTED[1]):
        for floor in floors_of(about).values():
            data = json.loads(json.dumps(floor.to_json()))
            derived = derive_floor(data)
            assert read_floor(data) == floor
            assert float(derived.value) == pytest.approx(floor.value, rel=1e-12)
            assert derived.by == floor.by
            ways.add(derived.by)
    assert ways == {"F1", "F2", "F3", "F1-errors", "F3-errors", "R1"}


def floors_below_bounds(about: Setting, floors: Mapping[str, Floor]) -> bool:
    """Whether every policy's bound is at least the floors of what it bounds."""
    for value in compare(about):
        for of, floor in floors.items():
            kind = "risk" if of == "risk" else "gap"
            if value.refusal is not None or (kind == "risk" and value.risk_refusal is not None):
                continue
            if math.log(floor.value) > value.of(kind).log_value + 1e-12:
                return False
    return True


def floors_of(about: Setting) -> dict[str, Floor]:
    return {of: floor for of in WAYS if (floor := floor_of(about, of)) is not None}


@pytest.mark.parametrize(("vectors", "others"), [(12, 12), pytest.param(1500, 500, marks=pytest.mark.slow)])
def test_no_floor_is_above_a_bound(vectors: int, others: int) -> None:
    """All policies on random settings, whose norms, rows, widths and samples vary; the slow form adds the recorded."""
    rng = random.Random(28)
    named = [about for about, _ in CASES.values()]
    if vectors > 100:
        named = [Setting.from_json(row["setting"]) for row in json.loads(TABLE.read_text(encoding="utf-8"))]
    drawn = [*(edelman(rng) for _ in range(vectors)), *(random_residual(rng) for _ in range(others))]
    floors = [(about, floors_of(about)) for about in (*named, *drawn) if refusal(about) is None]
    assert [about for about, each in floors if not floors_below_bounds(about, each)] == []
    assert sum(bool(each) for _, each in floors) >= 0.75 * (vectors + others)


def random_residual(rng: random.Random) -> Setting:
    """A setting that construction N is about."""
    preset = rng.choice(("bert", "gpt2", "llama", "vit"))
    table, width = ("W_patch", "d_patch") if preset == "vit" else ("embedding", "vocabulary")
    about = small(
        preset,
        depth=rng.choice((1, 2, 3)),
        d=rng.choice((2, 4, 16)),
        seq_len=rng.choice((1, 4, 50)),
        readout=rng.choice(("cls", "mean")),
        normalisation=rng.choice(("layernorm", "layernorm", "rmsnorm", "none", "ball")),
        classes=rng.choice((1, 1, 3)),
        bits=rng.choice((None, None, 16)),
        **{width: round(math.exp(rng.uniform(0.7, 5)))},
    )
    return with_norms(rng, about, ("W_V", "W_O", "readout", table))


MISTAKES: dict[str, tuple[str, object, str, Callable[..., Any]]] = {
    "a (2,1) budget off by k": (
        "C",
        Room,
        "scores",
        lambda honest, room, k, n, rows=None: k * honest(room, k, n, rows),
    ),
    "a table whose rows count once": ("N of bert", N, "entry", lambda _, construction, room: room.one("embedding")),
    "a mean that LayerNorm leaves": (
        "N of bert",
        residual,
        "_normalised",
        lambda honest, room, layer, row: honest(room, replace(layer, centred=False), row),
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_in_a_construction_are_seen(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, owner, attribute, wrong = MISTAKES[what]
    honest = getattr(owner, attribute)
    monkeypatch.setattr(owner, attribute, lambda *args: wrong(honest, *args))
    with pytest.raises(AssertionError):
        test_members_are_in_the_class_and_take_both_values(name)


def test_more_cells_than_the_width_allows_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a floor by as many cells as there are not is above a bound; the checkers refuse its
    construction."""
    about, construction = setting(d=4, C=8.0, n_train=10**6), A(10**5, 20)
    with pytest.raises(CertificateError, match="n is a whole number"):
        check_floor(about, construction, "F1")
    assert floors_below_bounds(about, floors_of(about))
    monkeypatch.setattr(A, "problem", lambda *_: None)
    assert not floors_below_bounds(about, {"gap": check_floor(about, construction, "F1")})


def test_errors_are_counted_where_members_err() -> None:
    about = setting()
    plain, errors = floor_of(about), floor_of(about, "errors")
    assert plain is not None
    assert errors is not None
    assert errors.value < plain.value
    assert plain.of != errors.of
    room = Room(INTERVAL, about)
    assert bool(errors.construction.output(room, -1) <= 0)
    assert bool(errors.construction.output(room, 1) >= room.gamma)


@pytest.mark.parametrize(
    ("about", "construction", "why"),
    [
        (setting(), A(16, 20), "from 2 to 15"),
        (setting(depth=2), A(15, 20), "one block"),
        (setting(readout="mean"), C(2, 13, 0.5, 20), "first row"),
        (setting(depth=2), E(16, 20, 10, 0.5), "k is a whole number"),
        (setting(depth=2), E(3, 20, 9, 0.5), "all 40 rows"),
        (setting(depth=2), B(15, 1.1), "tilt"),
        (setting(activation="gelu"), B(15, 0.4), "relu"),
        (setting(measured=("margin",)), B(15, 0.4), "before the data"),
        (setting(heads=2, kv_heads=1), B(15, 0.4), "values of their own"),
        (setting(bits=16), B(15, 0.4), "any real numbers"),
        (setting(), N(4), "styles with residuals"),
        (small("bert"), N(10), "from 2 to 9"),
        (small("bert", bits=8), N(4), "16 bits or more"),
        (small("bert", variance_floor=0.01), N(4), "floor of the variance"),
        (small("gpt2", positions="fixed", position_radius=1.0), N(4), "positions that are learned"),
        (small("gpt2", vocabulary=0), N(4), "tokens or patches"),
    ],
)
def test_what_does_not_fit_is_refused(about: Setting, construction: Any, why: str) -> None:
    with pytest.raises(CertificateError, match=why):
        check_floor(about, construction, "F1")
    both_refuse(Floor(about, construction, "F1", 1e-9).to_json())


def both_refuse(data: Any) -> None:
    data = json.loads(json.dumps(data))
    with pytest.raises(CertificateError):
        read_floor(data)
    with pytest.raises(Refused):
        derive_floor(data)


def test_forged_floors_are_refused_by_both() -> None:
    """0 is a floor where the formula is below it, as no gap is negative; less is no floor, and one cell gives none."""
    floor = floor_of(setting())
    assert floor is not None
    honest = json.loads(json.dumps(floor.to_json()))
    for changes in (
        {"value": honest["value"] * 1.001},
        {"by": "F4"},
        {"statements": 1},
        {"construction": {**honest["construction"], "name": "Z"}},
        {"construction": {**honest["construction"], "more": 1}},
        {"extra": 1},
    ):
        both_refuse({**honest, **changes})
    both_refuse({name: value for name, value in honest.items() if name != "by"})
    both_refuse(Floor(setting(), D(1, 1, 0.5, 0.5, 20), "F1", 0.0).to_json())
    with pytest.raises(CertificateError, match="no floor"):
        check_floor(setting(C=2.0), C(2, 13, 0.6, 20), "F2")
    few = setting(depth=4, d=768, C=2.1, n_train=22, margin=0.0024, normalisation="none")
    for about, construction in ((few, B(766, 1e-9)), (setting(n_train=100), A(10, 20))):
        floor = check_floor(about, construction, "F2")  # of `few` two factors below 0 are no floor of 618
        assert floor.value == 0.0 == float(derive_floor(json.loads(json.dumps(floor.to_json()))).value)
        for claimed in (1e-9, 0.5, -1.0):
            both_refuse({**floor.to_json(), "value": claimed})


def test_too_few_samples_are_found() -> None:
    """At the m that is named the checked floor is above the target; at ten times as many the search finds none
    there."""
    about = setting()
    floor = too_few_samples(about, 0.05, 10**6)
    assert floor is not None
    m = floor.setting.sample.n_train
    assert read_floor(json.loads(json.dumps(floor.to_json()))).value > 0.05
    later = floor_of(about.but(n_train=10 * m))
    assert later is None or later.value < 0.05
    assert too_few_samples(about, 0.99, 10**6) is None
