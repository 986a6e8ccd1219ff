"""Everything given is read or refused: keys, kinds, limits, heads, fields."""

from __future__ import annotations

import json
import random
import re
from dataclasses import fields, replace

import pytest

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.evaluate import evaluate
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.setting.norms import SIZES
from boundcalc.statements.network import Network
from tests.laws.settings import settings

HUGE = Budget(op=1000.0, two_one=1000.0)


def norms(*keys: str, budget: Budget = HUGE) -> Norms:
    return Norms(C=1.0, budgets=dict.fromkeys(keys, budget))


# -- spelling


def test_random_spellings_are_canonical_or_refused() -> None:
    rng = random.Random(1)
    plain = Setting.of(depth=2, heads=2)
    canonical = {"W_V", "W_V[0]", "W_V[1]", "W_V[0,0]", "W_V[0,1]", "W_V[1,0]", "W_V[1,1]"}
    taken: set[str] = set()
    for _ in range(3000):
        key = list(rng.choice(sorted(canonical)))
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(key) + 1)
            key[at : at + rng.randrange(2)] = rng.choice(
                (" ", "0", "\t", "\u0661", "", "+", "-", ",", "[", "]", "\u00a0", "v")
            )
        text = "".join(key)
        try:
            plain.but(norms=norms(text))
        except InvalidSetting:
            continue
        taken.add(text)
    assert taken == canonical


def test_budgets_are_kept_as_they_were_checked() -> None:
    given = {"W_V": Budget(op=1.0)}
    kept = Norms(C=1.0, budgets=given)
    given["W_V[0, 0]"] = HUGE
    assert list(kept.budgets) == ["W_V"]


# -- which budgets are read


@pytest.mark.parametrize(
    ("preset", "keys", "why"),
    [
        ("edelman", ("W_Q", "W_K"), "must be one of W_QK, W_V"),
        ("llama", ("W_QK",), "must be one of embedding, norm_attention.gain, W_Q, W_K, W_V"),
        ("gpt2", ("W_Q[0]", "W_K[0]", "W_QK[0]"), "not for both (block 0)"),
        ("gpt2", ("W_QK", "W_Q[1,1]"), "not for both (block 1, head 1)"),
        ("gpt2", ("b_K",), "the kind must be one of"),  # softmax forgets it
        ("gpt2", ("W_V", "W_V[0]", "W_V[1]"), "each of its places reads another budget"),
        ("edelman", ("W_VV",), "did you mean 'W_V'?"),
        ("edelman", ("W_V[2]",), "blocks are 0 to 1"),
        ("edelman", ("W_V[0,2]",), "numbered from 0"),
        ("edelman", ("W_1[0,0]",), "no head 0"),
        ("edelman", ("readout[0]",), "belongs to no block"),
        ("edelman", ("W_V[-1]",), "a norm's key"),
    ],
)
def test_budgets_that_nothing_reads_are_refused(preset: str, keys: tuple[str, ...], why: str) -> None:
    plain = Setting.of(preset, depth=2, d=8, heads=2)
    with pytest.raises(InvalidSetting, match=rf"^.*{re.escape(why)}.*$"):
        plain.but(norms=norms(*keys))


@pytest.mark.parametrize(
    ("key", "budget", "why"),
    [
        ("W_V", Budget(op=1.0, sup=1.0), "nothing reads 'sup' of W_V"),
        ("b_1", Budget(op=1.0, rank=1), "nothing reads 'rank' of b_1"),
        ("norm_ffn.gain", Budget(op=1.0, sup=1.0), "nothing reads 'op' of norm_ffn.gain"),
        ("positions", Budget(row=1.0, nuclear=1.0), "nothing reads 'nuclear' of positions"),
        ("W_Q", Budget(op=1.0, distance=Budget(op=1.0)), "nothing reads 'distance' of W_Q"),
        ("W_V", Budget(op=1.0, distance=Budget(op=1.0, row=1.0)), "distance: nothing reads 'row'"),
        ("W_V", Budget(op=1.0, distance=Budget(op=1.0, distance=Budget(op=1.0))), "distance: nothing reads 'distance'"),
    ],
)
def test_limits_that_nothing_can_use_are_refused(key: str, budget: Budget, why: str) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(why)):
        Setting.of("gpt2", depth=1, d=8, heads=2, norms=norms(key, budget=budget))


# -- sensitivity: what is accepted counts


def weight(setting: Setting) -> float:
    """What the pieces of a setting weigh: sum over pieces of gain times reach, in logs."""
    from boundcalc.base.intervals import INTERVAL, upper_log

    low = Network(setting, INTERVAL)
    total = low.amplification
    for piece in low.pieces:
        for member in piece.members:
            target = member.targets[0]
            total = total + member.multiplicity * piece.gain * target.radius * (target.norms.op + target.norms.two_one)
    return upper_log(total + low.radius)


def unmoved(number: int) -> list[str]:
    """Budgets of random settings that weigh nothing when they grow a million times."""
    found: list[str] = []
    for setting in settings("sensitivity", number):
        for key, budget in setting.norms.budgets.items():
            if max(budget.op or 0.0, budget.sup or 0.0, budget.row or 0.0) == 0 or budget.rank == 0:
                continue
            grown = budget.map(lambda x: 1e6 * x)
            given = replace(setting.norms, budgets={**setting.norms.budgets, key: grown})
            if not weight(setting.but(norms=given)) > weight(setting) + 1e-9:
                found.append(f"{key}: {json.dumps(setting.to_json())}")
    return found


def test_a_budget_a_million_times_as_large_counts() -> None:
    assert unmoved(300)[:1] == []


def test_the_law_sees_a_budget_that_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were budgets of single heads or blocks not found, the law would say so."""
    monkeypatch.setattr("boundcalc.statements.weights.Weights.check_all_read", lambda self: None)
    monkeypatch.setattr(Norms, "find", lambda self, kind, block=None, head=None: self.budgets.get(kind, self._knob))
    assert unmoved(40)


# -- classes without members


@pytest.mark.parametrize(("floor", "empty"), [(0.0, False), (1 / 16, False), (0.0626, True), (1.0, True), (1e6, True)])
def test_a_variance_that_no_row_has_is_refused(floor: float, empty: bool) -> None:
    small = Setting.of("gpt2", depth=1, d=64, heads=4, seq_len=128, n_train=10**9, variance_floor=floor)
    if not empty:
        assert evaluate(small).certificate.log_value < 0
        return
    with pytest.raises(BoundcalcError, match="no network has a variance of"):
        evaluate(small)


def test_a_centred_row_of_one_number_has_no_variance() -> None:
    one = Setting.of("gpt2", depth=1, d=1, heads=1, C=9.0, variance_floor=1e-6)
    with pytest.raises(InvalidSetting, match="no network has a variance"):
        Network(one, FLOAT)
    Network(one.but(normalisation="rmsnorm", bias=False), FLOAT)


# -- fields


def test_random_fields_are_known_or_refused() -> None:
    """Wherever a field nobody knows is put into the JSON of a setting, it is refused."""
    rng = random.Random(2)
    for setting in settings("fields", 100):
        data = json.loads(json.dumps(setting.to_json()))
        objects = [data]
        for one in objects:  # the list grows
            objects += [value for value in one.values() if isinstance(value, dict)]
        rng.choice(objects)[rng.choice(("seqlen", "Op", "", "note", "_", "W_V[0, 0]"))] = {"op": 1.0}
        with pytest.raises(InvalidSetting):
            Setting.from_json(data)


# -- what is done to all limits of a budget at once

SMALL = Budget(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 2, 7.0, 8.0, 8.5, Budget(op=0.25))
LARGE = Budget(2.0, 2.5, 2.75, 9.0, 9.5, 7.0, 1, 6.0, 9.0, 9.5, Budget(op=0.5))
NAMES = tuple(f.name for f in fields(Budget))


def test_mapping_reaches_every_limit() -> None:
    """A further limit must be mapped and joined too."""
    assert set(NAMES) == {*SIZES, "rank", "distance"}
    doubled = SMALL.map(lambda x: 2 * x)
    assert all(getattr(doubled, name) == 2 * getattr(SMALL, name) > 0 for name in SIZES)
    assert (doubled.rank, doubled.distance) == (2, Budget(op=0.5))
    assert Budget().map(lambda x: x + 1) == Budget()


def test_joined_budgets_fit_both() -> None:
    joined = Budget(2.0, 2.5, 3.0, 9.0, 9.5, 7.0, 2, 7.0, 9.0, 9.5, Budget(op=0.5))
    assert SMALL.join(LARGE) == LARGE.join(SMALL) == joined


@pytest.mark.parametrize("name", NAMES)
def test_what_one_leaves_open_is_open(name: str) -> None:
    """A limit of one matrix is no limit of another."""
    one = Budget(**{name: getattr(SMALL, name)})
    assert one.join(Budget()) == Budget().join(one) == Budget()
    assert getattr(one.join(SMALL), name) == getattr(SMALL, name)
