"""Forged certificates: every number nudged, every lemma swapped, every rule of G, A0 and P1 broken in turn."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from boundcalc import Budget, Norms, Setting, evaluate
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check, verify
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.posthoc import grid_value
from boundcalc.statements.strategies import STRATEGIES
from tests.proof import alone
from tests.proof.both import at, places
from tests.proof.samples import SETTINGS, proved

Json = dict[str, Any]
PARAMS = {name: {"t": 0.1} for name in ("T4", "T8", "T10")}


def refusal(data: Json | Certificate) -> str | None:
    """Why the checker refuses, or None."""
    try:
        verify(data if isinstance(data, Certificate) else Certificate.from_json(data))
    except CertificateError as error:
        return str(error)
    return None


def claiming(data: Json) -> Json:
    """The document with every claim so weak that only its steps can be wrong (changed in place)."""
    data |= {"log_value": 1e6, "nats": 1e6}
    for level in data["levels"]:
        level["log_count"] = 1e6
    return data


def loose(certificate: Certificate) -> Certificate:
    """The same for a certificate."""
    levels = tuple(replace(level, log_count=1e6) for level in certificate.levels)
    return replace(certificate, log_value=1e6, nats=1e6, levels=levels)


def pick(name: str, strategy: str, *, levels: bool = True) -> Certificate:
    """A certificate of a strategy, with levels."""
    return next(c for c in proved(name) if c.strategy == strategy and (c.levels or not levels))


def documents(name: str) -> Iterator[Json]:
    for certificate in proved(name):
        if certificate.levels:
            yield certificate.to_json()


def covers(data: Json) -> Iterator[tuple[Json, str, Json]]:
    """(level, piece, cover) of a document."""
    for level in data["levels"]:
        for name, cover in level["covers"].items():
            yield level, name, cover


# ------------------------------------------------------------------------------------------------ claims


@pytest.mark.parametrize("name", SETTINGS)
def test_a_stronger_claim_is_refused(name: str) -> None:
    for data in documents(name):
        assert refusal(data) is None
        data["log_value"] -= 1e-9 * max(1.0, abs(data["log_value"]))
        assert "does not follow" in str(refusal(data))


def test_every_strategy_is_among_the_samples() -> None:
    assert {c.strategy for name in SETTINGS for c in proved(name)} == set(STRATEGIES)


# ------------------------------------------------------------------------------------------------ numbers


ENDS = 1
"""Of a list of weights this many first and last ones are nudged in the usual run; all of them in the slow one."""


def inner(data: Json, path: tuple[Any, ...]) -> bool:
    """Whether a path leads into a long list, away from its ends."""
    if not path:
        return False
    where, index = at(data, path[:-1]), path[-1]
    return isinstance(where, list) and not isinstance(where[index], dict) and ENDS <= index < len(where) - ENDS


def nudged(data: Json, *, whole: bool = False) -> Iterator[Json]:
    """The document with one number 1% larger or smaller (integers by at least one), claiming whatever follows."""
    for path in places(data):
        if not whole and inner(data, path):
            continue
        value = at(data, path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        for factor in (0.99, 1.01):
            near = round(value * factor) if isinstance(value, int) else value * factor
            copied = copy.deepcopy(data)
            at(copied, path[:-1])[path[-1]] = value + (1 if factor > 1 else -1) if near == value else near
            yield claiming(copied)


def contradiction(data: Json) -> str | None:
    """Where the checker accepts what the second checker does not, or at another value."""
    try:
        certificate = Certificate.from_json(data)
        log_value = check(certificate).log_value
    except CertificateError:
        return None
    try:
        exact = alone.log_value(certificate)
    except CertificateError as error:
        return f"accepted at e^{log_value}, though {error}"
    difference = abs(float(log_value - exact))
    return f"e^{log_value} differs by {difference}" if difference > 1e-9 and exact < 0 else None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_nudged_number_is_refused_or_means_what_the_second_checker_says(strategy: str) -> None:
    assert_nudges_mean_the_same(strategy, whole=False)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name.startswith("comparison")])
def test_every_weight_of_a_series_nudged(strategy: str) -> None:
    assert_nudges_mean_the_same(strategy, whole=True)


def assert_nudges_mean_the_same(strategy: str, *, whole: bool) -> None:
    samples = ("edelman", "deep", "stored", "comparison")
    data = next(c for name in samples for c in proved(name) if c.strategy == strategy).to_json()
    data["levels"] = data["levels"][:2]
    outcomes = [contradiction(changed) for changed in nudged(data, whole=whole)]
    assert [text for text in outcomes if text] == []
    assert len(outcomes) > 15


@pytest.mark.parametrize("name", SETTINGS)
def test_a_wider_cover_leaves_more_error_than_the_level_says(name: str) -> None:
    """Every eps of every level spends its share: 1% more of any covered piece is too much."""
    for strategy in ("chain", "uniform-margin"):
        data = next((d for d in documents(name) if d["strategy"] == strategy), None)
        if data is None:
            continue
        data["levels"] = data["levels"][:1]
        claiming(data)
        assert refusal(data) is None
        for level, _, cover in list(covers(data)):
            if any(choice["lemma"] != "zero" for choice in cover["choices"]):
                cover["log_eps"] += 0.01
                assert "larger error" in str(refusal(data))
                cover["log_eps"] -= 0.01
            level["log_scale"] -= 0.01
            assert "larger error" in str(refusal(data))
            level["log_scale"] += 0.01


# ------------------------------------------------------------------------------------------------ lemmas


def test_swapped_lemmas_are_refused_or_cost_what_they_cost() -> None:
    outcomes: list[str | None] = []
    for strategy in ("chain", "uniform-margin", "closed", "published"):
        data = pick("edelman", strategy).to_json()
        data["levels"] = data["levels"][:1]
        claiming(data)
        for _, name, cover in list(covers(data)):
            before = cover["choices"]
            for lemma in (*LEMMAS, "zero", "T7"):
                for target in range(3):
                    cover["choices"] = [{"lemma": lemma, "target": target, "params": PARAMS.get(lemma, {})}]
                    outcomes.append(contradiction(data))
                    if lemma == "T7" or (lemma in ("T8", "T9", "T10")):
                        assert refusal(data) is not None, (name, lemma)
            cover["choices"] = before
    assert [text for text in outcomes if text] == []


def test_zero_covers_below_their_reach_are_refused() -> None:
    data = pick("edelman", "uniform-margin").to_json()
    for _, name, cover in covers(data):
        claiming(data)
        before = cover["choices"]
        cover["choices"] = [{"lemma": "zero"}]
        why = refusal(data)
        assert why is not None, name
        cover["choices"] = before


@pytest.mark.parametrize(
    ("lemma", "params"),
    [
        *(("T4", {"t": t}) for t in (0.0, 1.0, -0.1, 0.76)),
        ("T5", {"theta": 0.5}),
        ("T4", {}),
        ("T4", {"t": 0.1, "rho": 1.2}),
        ("T3", {"t": 0.1}),
    ],
)
def test_parameters_outside_their_range_are_refused(lemma: str, params: dict[str, float]) -> None:
    setting = SETTINGS["edelman"].but(d=32, d_head=2)
    certificate = pick("edelman", "chain")
    data = claiming(replace(certificate, setting=setting).to_json())
    for level in data["levels"]:
        level["log_scale"] = -1.0
    data["levels"] = data["levels"][:1]
    for _, name, cover in covers(data):
        cover["log_eps"] = -9.0
        choice = {"lemma": "T3", "target": 1 if name.startswith("W_QK") else 0, "params": {}}
        cover["choices"] = [choice]
    assert refusal(data) is None
    key, target = ("W_QK[0]", 1) if lemma == "T5" else ("W_V[0]", 0)
    data["levels"][0]["covers"][key]["choices"] = [{"lemma": lemma, "target": target, "params": params}]
    assert lemma in str(refusal(data))


# ------------------------------------------------------------------------------------------------ structure


def test_missing_extra_and_renamed_pieces_are_refused() -> None:
    for name in SETTINGS:
        for data in documents(name):
            level = data["levels"][-1]["covers"]
            for key in list(level):
                cover = level.pop(key)
                assert "does not say how" in str(refusal(data))
                level[key + "#2"] = cover
                assert refusal(data) is not None
                level[key] = level.pop(key + "#2")
            level["W_V[77]"] = next(iter(level.values()))
            assert "no piece" in str(refusal(data))
            break


def test_scales_that_do_not_fall_are_refused() -> None:
    for name in ("deep", "bert"):
        fresh = (
            d for d in documents(name) if not any("refines" in c for *_, cover in covers(d) for c in cover["choices"])
        )
        data = next(d for d in fresh if d["strategy"] == "chain" and len(d["levels"]) > 1)
        data["levels"].reverse()
        claiming(data)
        assert "must fall" in str(refusal(data))
        data["levels"].reverse()
        data["levels"][0]["log_scale"] = math.log(0.51)
        assert "must fall" in str(refusal(data))


def test_training_errors_need_their_theorem() -> None:
    """The limit of the kl inverse is for training error 0; margins are for the ramp."""
    margin = pick("edelman", "uniform-margin")
    assert "mu" in str(refusal(replace(loose(margin), setting=margin.setting.but(train_error=0.1))))
    other = replace(loose(margin), setting=margin.setting.but(lipschitz=0.1))
    assert "ramp" in str(refusal(other))
    level = replace(loose(margin).levels[0], log_scale=math.log(0.6))
    assert "half the margin" in str(refusal(replace(loose(margin), levels=(level,))))


def test_another_strategy_is_taken_by_both_checkers_or_none() -> None:
    for data in documents("edelman"):
        for name in STRATEGIES.keys() - {data["strategy"]}:
            assert contradiction(claiming(copy.deepcopy(data) | {"strategy": name, "meeting": False})) is None


def test_published_covers_are_counted_where_the_integral_starts() -> None:
    data = pick("edelman", "published").to_json()
    for level, _, cover in covers(data):
        level["log_scale"] = 8.0
        cover["log_eps"] += 5.0
    assert "Dudley" in str(refusal(claiming(data)))


def test_t13_bounds_no_other_scale() -> None:
    data = claiming(pick("measured", "closed").to_json())
    params = pick("edelman", "chain").levels[0].covers["W_V[0]"].choices[0].params
    for _, name, cover in covers(data):
        if name.startswith("W_1"):
            cover["choices"] = [{"lemma": "T13", "target": 0, "params": dict(params)}]
    assert "other" in str(refusal(data))


# ------------------------------------------------------------------------------------------------ P1


def measured() -> Json:
    return claiming(pick("measured", "chain").to_json())


def test_measured_budgets_without_the_record_are_a_proxy() -> None:
    data = measured()
    assert refusal(data) is None
    data["setting"]["norms"]["measured"] = True
    data["looked_at"] = None
    assert "proxy" in str(refusal(data))


def test_the_record_is_paid_for() -> None:
    """Without the record the same budgets are fixed in advance, and the value is smaller: P1 is a cost."""
    data = measured()
    paid = check(Certificate.from_json(data)).log_value
    data["looked_at"] = None
    assert paid > check(Certificate.from_json(data)).log_value + 1e-4


def with_budget(data: Json, part: str, key: str, name: str, value: Any) -> Json:
    """The document with one budget of the setting or of the record changed."""
    copied = copy.deepcopy(data)
    norms = copied["looked_at"]["norms"] if part == "measured" else copied["setting"]["norms"]
    norms["budgets"].setdefault(key, {})[name] = value
    return copied


def test_budgets_below_what_was_measured_are_refused() -> None:
    data = measured()
    for key, budget in data["setting"]["norms"]["budgets"].items():
        for name, value in budget.items():
            if name != "Sp":
                assert "below the measured" in str(refusal(with_budget(data, "measured", key, name, value * 1.001)))
                less = grid_value(-1) if value <= grid_value(0) else value / 2**0.125
                assert refusal(with_budget(data, "setting", key, name, less)) is not None
        if "Sp" in budget:
            power, total = budget["Sp"]
            assert "measured" in str(refusal(with_budget(data, "measured", key, "Sp", [power, total * 1.001])))
            assert "measured" in str(refusal(with_budget(data, "measured", key, "Sp", [power / 2, total])))


def test_budgets_off_their_grid_are_refused() -> None:
    data = measured()
    for key, budget in data["setting"]["norms"]["budgets"].items():
        for name, value in budget.items():
            if name != "Sp":
                assert "grid" in str(refusal(with_budget(data, "setting", key, name, value * 1.0001)))
            else:
                assert "grid" in str(refusal(with_budget(data, "setting", key, name, [value[0], value[1] * 1.0001])))


def test_powers_off_the_list_are_refused() -> None:
    data = with_budget(measured(), "setting", "W_V", "Sp", [0.51, grid_value(40)])
    assert "power" in str(refusal(with_budget(data, "measured", "W_V", "Sp", [0.51, 1.0])))


def test_smaller_budgets_for_a_block_are_refused() -> None:
    """A part may not have less than the whole was measured to have."""
    small = {"op": grid_value(0), "21": grid_value(1)}
    for key in ("W_V[0]", "W_V[0,1]"):
        data = measured()
        data["setting"]["norms"]["budgets"][key] = small
        data["setting"]["architecture"]["depth"] = 2  # so that the common budget is still read
        assert "no measurement" in str(refusal(data))
    data = measured()
    data["looked_at"]["norms"]["budgets"]["W_V[0]"] = {"op": 5.0, "21": 5.0}  # smaller, and without a Schatten sum
    assert "measured" in str(refusal(data))


def test_a_measured_norm_may_not_be_left_out() -> None:
    """It would cost less, and which norms are paid for may not depend on their values."""
    data = measured()
    budget = data["setting"]["norms"]["budgets"]["W_V"]
    for name in list(budget):
        changed = copy.deepcopy(data)
        del changed["setting"]["norms"]["budgets"]["W_V"][name]
        assert "W_V" in str(refusal(changed))


def test_heads_measured_do_not_stand_for_heads_that_were_not() -> None:
    for heads in ([0], [1], [0, 1]):
        data = measured()
        record = data["looked_at"]["norms"]["budgets"]
        budget = record.pop("W_V")
        record |= {f"W_V[0,{head}]": budget for head in heads}
        assert (refusal(data) is None) == (heads == [0, 1])


def test_blocks_measured_do_not_stand_for_blocks_that_were_not() -> None:
    """Four of five blocks unmeasured: no budget may be made up for them."""
    budget = Budget(op=1.0, fro=2.0, two_one=3.0)
    some = {f"{kind}[0]": budget for kind in ("W_QK", "W_V", "W_1")} | {"readout": Budget(op=1.0)}
    setting = Setting.of(depth=5, d=8, seq_len=16, n_train=10**9, norms=Norms(budgets=some, measured=True))
    with pytest.raises(InvalidSetting, match="no norm budget for W_QK"):
        evaluate(setting)
    every = {f"{kind}[{block}]": budget for kind in ("W_QK", "W_V", "W_1") for block in range(5)}
    paid = evaluate(setting.but(norms=Norms(budgets=every | {"readout": Budget(op=1.0)}, measured=True)))
    data = paid.certificate.to_json()
    assert sorted(data["setting"]["norms"]["budgets"]) == ["W_1", "W_QK", "W_V", "readout"]
    del data["looked_at"]["norms"]["budgets"]["W_V[3]"]
    assert "no measurement" in str(refusal(data))


@pytest.mark.parametrize("record", [[], "x", 3, True, {"C": "x"}, {"budgets": []}, {"C": float("nan")}, {"D": 1}])
def test_a_malformed_record_is_refused(record: Any) -> None:
    """In a file, where a part of it may be wrong too, and in memory."""
    data = measured()
    full = data["looked_at"]["norms"]
    for norms in (record, full | record if isinstance(record, dict) else record):
        data["looked_at"]["norms"] = norms
        assert refusal(data) is not None
    certificate = loose(pick("measured", "chain"))
    assert refusal(certificate) is None
    assert refusal(replace(certificate, measured=record)) is not None


def test_unmeasured_and_unbudgeted_matrices_are_refused() -> None:
    data = measured()
    del data["looked_at"]["norms"]["budgets"]["readout"]
    assert refusal(data) is not None
    data = measured()
    data["looked_at"]["norms"]["budgets"]["W_9"] = {"op": 1.0}
    assert refusal(data) is not None
    data = measured()
    data["setting"]["norms"]["C"] = grid_value(30)
    assert "knob" in str(refusal(data))
