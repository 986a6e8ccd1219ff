"""Forged certificates: every claim, cover and rule of G, A0 and P1 broken in turn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from boundcalc import Budget, Norms, Setting, evaluate
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check, verify
from boundcalc.statements.posthoc import _grid_value
from tests.proof.both import GONE, Place, at, claiming, put
from tests.proof.samples import SETTINGS, proved

Json = dict[str, Any]


def refusal(data: Json | Certificate) -> str | None:
    """Why the checker refuses, or None."""
    try:
        verify(data if isinstance(data, Certificate) else Certificate.from_json(data))
    except CertificateError as error:
        return str(error)
    return None


def loose(certificate: Certificate) -> Certificate:
    """A certificate whose claims anything fulfils."""
    return Certificate.from_json(claiming(certificate))


def pick(name: str, strategy: str) -> Certificate:
    """A certificate of a strategy, with levels."""
    return next(c for c in proved(name) if c.strategy == strategy and c.levels)


def covers(data: Json) -> Iterator[tuple[Json, str, Json]]:
    """(level, piece, cover) of a document."""
    for level in data["levels"]:
        for name, cover in level["covers"].items():
            yield level, name, cover


# ------------------------------------------------------------------------------------------------ claims


@pytest.mark.parametrize("name", SETTINGS)
def test_a_stronger_claim_is_refused(name: str) -> None:
    """The value, a level's log count and what was paid, each a billionth lower, do not follow."""
    for certificate in proved(name):
        data = certificate.to_json()
        assert refusal(data) is None
        first: list[Place] = [("levels", 0, "log_count")] if certificate.levels else []
        for path in (("log_value",), ("nats",), *first):
            stronger = at(data, path) - 1e-9 * max(1.0, abs(at(data, path)))
            assert "does not follow" in str(refusal(put(data, path, stronger)))


# ------------------------------------------------------------------------------------------------ covers


@pytest.mark.parametrize("name", SETTINGS)
def test_a_wider_cover_leaves_more_error_than_the_level_says(name: str) -> None:
    """Every eps of every level spends its share: 1% more of any covered piece is too much."""
    for strategy in ("chain", "uniform-margin"):
        found = next((c for c in proved(name) if c.strategy == strategy and c.levels), None)
        if found is None:
            continue
        data = claiming(found, 1)
        assert refusal(data) is None
        (level,) = data["levels"]
        wider: list[Place] = [("levels", 0, "log_scale", level["log_scale"] - 0.01)]
        for key, cover in level["covers"].items():
            if any(choice["lemma"] != "zero" for choice in cover["choices"]):
                wider.append(("levels", 0, "covers", key, "log_eps", cover["log_eps"] + 0.01))
                zero = put(data, ("levels", 0, "covers", key, "choices"), [{"lemma": "zero"}] * len(cover["choices"]))
                assert refusal(zero) is not None, key
        for *path, value in wider:
            assert "larger error" in str(refusal(put(data, tuple(path), value)))


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
    data = claiming(replace(pick("edelman", "chain"), setting=setting), 1)
    data["levels"][0]["log_scale"] = -1.0
    for _, name, cover in covers(data):
        cover["log_eps"] = -9.0
        cover["choices"] = [{"lemma": "T3", "target": 1 if name.startswith("W_QK") else 0, "params": {}}]
    assert refusal(data) is None
    key, target = ("W_QK[0]", 1) if lemma == "T5" else ("W_V[0]", 0)
    data["levels"][0]["covers"][key]["choices"] = [{"lemma": lemma, "target": target, "params": params}]
    assert lemma in str(refusal(data))


@pytest.mark.parametrize("name", SETTINGS)
def test_missing_extra_and_renamed_pieces_are_refused(name: str) -> None:
    data = claiming(next(c for c in proved(name) if c.levels), 1)
    pieces = data["levels"][0]["covers"]
    for key, cover in pieces.items():
        missing = put(data, ("levels", 0, "covers", key))
        assert "does not say how" in str(refusal(missing))
        assert refusal(put(missing, ("levels", 0, "covers", f"{key}#2"), cover)) is not None
    extra = put(data, ("levels", 0, "covers", "W_V[77]"), next(iter(pieces.values())))
    assert "no piece" in str(refusal(extra))


def test_scales_that_do_not_fall_are_refused() -> None:
    def refines(certificate: Certificate) -> bool:
        return any(x.refines for level in certificate.levels for c in level.covers.values() for x in c.choices)

    for name in ("deep", "bert"):
        chains = (c for c in proved(name) if c.strategy == "chain" and len(c.levels) > 1 and not refines(c))
        data = claiming(next(chains))
        assert "must fall" in str(refusal(data | {"levels": data["levels"][::-1]}))
        assert "must fall" in str(refusal(put(data, ("levels", 0, "log_scale"), math.log(0.51))))


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("setting", "sample", "train_error"), 0.1, "mu"),
        (("setting", "sample", "lipschitz"), 0.1, "ramp"),
        (("levels", 0, "log_scale"), math.log(0.6), "half the margin"),
    ],
)
def test_training_errors_need_their_theorem(path: Place, value: float, why: str) -> None:
    """The limit of the kl inverse is for training error 0; margins are for the ramp."""
    assert why in str(refusal(put(claiming(pick("edelman", "uniform-margin")), path, value)))


def test_published_covers_are_counted_where_the_integral_starts() -> None:
    data = claiming(pick("edelman", "published"))
    for level, _, cover in covers(data):
        level["log_scale"] = 8.0
        cover["log_eps"] += 5.0
    assert "Dudley" in str(refusal(data))


def test_t13_bounds_no_other_scale() -> None:
    data = claiming(pick("measured", "closed"))
    params = pick("edelman", "chain").levels[0].covers["W_V[0]"].choices[0].params
    for _, name, cover in covers(data):
        if name.startswith("W_1"):
            cover["choices"] = [{"lemma": "T13", "target": 0, "params": dict(params)}]
    assert "other" in str(refusal(data))


# ------------------------------------------------------------------------------------------------ P1

SETTING, RECORD = ("setting", "norms"), ("looked_at", "norms")
SMALL = {"op": _grid_value(0), "21": _grid_value(1)}


def measured() -> Json:
    return claiming(pick("measured", "chain"))


def test_the_record_is_paid_for() -> None:
    """Without the record the same budgets are fixed in advance, and the value is smaller: P1 is a cost."""
    data = measured()
    paid = check(Certificate.from_json(data)).log_value
    assert paid > check(Certificate.from_json(put(data, ("looked_at",), None))).log_value + 1e-4


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({(*SETTING, "measured"): True, ("looked_at",): None}, "proxy"),
        # a part may not have less than the complete matrix was measured to have
        ({(*SETTING, "budgets", "W_V[0]"): SMALL, ("setting", "architecture", "depth"): 2}, "no measurement"),
        ({(*SETTING, "budgets", "W_V[0,1]"): SMALL, ("setting", "architecture", "depth"): 2}, "no measurement"),
        ({(*RECORD, "budgets", "W_V[0]"): {"op": 5.0, "21": 5.0}}, "measured"),
        ({(*SETTING, "C"): _grid_value(30)}, "knob"),
        ({(*RECORD, "budgets", "readout"): GONE}, "readout"),
        ({(*RECORD, "budgets", "W_9"): {"op": 1.0}}, "W_9"),
        # it would cost less, and which norms are paid for may not depend on their values
        *(({(*SETTING, "budgets", "W_V", norm): GONE}, "W_V") for norm in ("op", "21", "nuclear")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_records_and_budgets_that_do_not_belong_together_are_refused(changes: dict[Place, Any], why: str) -> None:
    data = measured()
    assert refusal(data) is None
    for path, value in changes.items():
        data = put(data, path, value)
    assert why in str(refusal(data))


def test_budgets_are_on_the_grid_above_what_was_measured() -> None:
    data = measured()
    for key, budget in data["setting"]["norms"]["budgets"].items():
        for name, value in budget.items():

            def scaled(part: Place, factor: float, value: float = value) -> Json:
                return put(data, (*part, "budgets", key, name), value * factor)  # noqa: B023

            assert "measured" in str(refusal(scaled(RECORD, 1.001)))
            assert "grid" in str(refusal(scaled(SETTING, 1.0001)))
            least = value <= _grid_value(0)
            assert refusal(scaled(SETTING, _grid_value(-1) / value if least else 2**-0.125)) is not None


@pytest.mark.parametrize("heads", [[0], [1], [0, 1]])
def test_heads_measured_do_not_stand_for_heads_that_were_not(heads: list[int]) -> None:
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
    assert "no measurement" in str(refusal(put(data, (*RECORD, "budgets", "W_V[3]"))))


@pytest.mark.parametrize("record", [[], "x", 3, True, {"C": "x"}, {"budgets": []}, {"C": float("nan")}, {"D": 1}])
def test_a_malformed_record_is_refused(record: Any) -> None:
    """In a file, where a part of it may be wrong too, and in memory."""
    data = measured()
    full = data["looked_at"]["norms"]
    for norms in (record, full | record if isinstance(record, dict) else record):
        assert refusal(put(data, RECORD, norms)) is not None
    certificate = loose(pick("measured", "chain"))
    assert refusal(certificate) is None
    assert refusal(replace(certificate, measured=record)) is not None
