"""Certificates changed at random: both checkers refuse them in a line, or verify the same weaker claim; none breaks."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.base.files import parse_json
from boundcalc.proof import second
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import verify
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.strategies import STRATEGIES
from tests.proof.both import at, claiming, places, put
from tests.proof.samples import SETTINGS, proved

JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 12, 3.5, -0.0, 1e-320, 1e308, -1e308, float("nan"), float("inf")),
    *(10**19, 10**400, -(10**400), "", "zero", "T1", "T5", "T10", "Tpub", "W_V[0]", "softmax", "x\ny", "x" * 1000),
    *([], {}, [[]], [None], [1, 2], {"a": 1}, {"lemma": "zero"}, {"op": 1.0}),
)
NEW_KEYS = (
    *("extra", "W_V[1]", "rank", "nuclear", "F", "block", "layers"),
    *("measured", "eps", "depth", "mu", "alpha", "nats"),
)


def near(value: Any) -> list[Any]:
    """What is easily taken for a value."""
    if isinstance(value, bool):
        return [not value, None, 1]
    if isinstance(value, int):
        whole = [value + 1, value - 1, -value, str(value)]
        return [*whole, value + 0.5, float(value)] if abs(value) < 10**300 else whole
    if isinstance(value, float):
        large = abs(value) > 1e300
        return [0.0, 5e-324, 1e301] if large else [value * 1.01, value * 0.99, -value, value * 1e10, 0.0, 5e-324, 1e301]
    if isinstance(value, str):
        return [f"{value}x", *next((names for names in (LEMMAS, STRATEGIES) if value in names), ())]
    if isinstance(value, dict):
        return [{**value, "extra": 1}]
    return [[*value, *value], value[::-1]] if isinstance(value, list) else [0, 1, False, "x"]


def mutated(data: Any, rng: random.Random) -> Any:
    """A copy with one to four random changes."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        every = list(places(data))
        path = rng.choice(every)
        if not path:
            return copy.deepcopy(rng.choice(JUNK))
        owner, step = at(data, path[:-1]), path[-1]
        kind = rng.random()
        if kind < 0.3:
            owner[step] = copy.deepcopy(rng.choice(JUNK))
        elif kind < 0.45:
            del owner[step]
        elif kind < 0.75:
            owner[step] = copy.deepcopy(rng.choice(near(owner[step])))
        elif kind < 0.9:
            owner[step] = copy.deepcopy(at(data, rng.choice(every)))
        elif isinstance(owner, dict):
            owner[rng.choice(NEW_KEYS)] = copy.deepcopy(rng.choice(JUNK))
    return data


def first(text: str) -> float | None:
    """The first checker's value, or None; what it says against a certificate is a line."""
    try:
        certificate = Certificate.from_json(parse_json(text, "x", CertificateError))
        value = verify(certificate).log_value
    except CertificateError as error:
        said = str(error)
    else:
        assert value <= certificate.log_value + 1e-9
        return value
    assert "\n" not in said
    assert 0 < len(said) < 500
    return None


def alone(text: str) -> float | None:
    try:
        return float(second.confirm(text).log_value)
    except second.Refused:
        return None


def contradiction(data: Any) -> str | None:
    """Where one checker accepts what the other refuses, or at another value."""
    text = json.dumps(data)
    by_first, by_second = first(text), alone(text)
    if by_first is None or by_second is None:
        return None if by_first is by_second else f"{by_first, by_second}"
    return None if abs(by_first - by_second) <= 1e-9 * max(1.0, abs(by_first)) else f"{by_first, by_second}"


CASES = sorted({(name, c.strategy) for name in SETTINGS for c in proved(name)})


@pytest.mark.parametrize("number", [10, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "strategy"), CASES)
def test_no_mutation_is_taken_by_one_checker_alone(name: str, strategy: str, number: int) -> None:
    """Of certificates as they are, and of such whose claims anything fulfils."""
    rng = random.Random(f"{name} {strategy}")
    certificate = next(c for c in proved(name) if c.strategy == strategy)
    for i in range(number):
        data = mutated(certificate.to_json() if i % 3 == 0 else claiming(certificate, 2), rng)
        assert contradiction(data) is None, data


def chain() -> Certificate:
    return next(c for c in proved("edelman") if c.strategy == "chain" and c.levels)


def test_the_fuzzer_changes_documents() -> None:
    rng, data = random.Random(0), claiming(chain())
    assert contradiction(data) is None
    changed = [mutated(data, rng) for _ in range(100)]
    assert sum(each != data for each in changed) > 80
    assert 5 < sum(first(json.dumps(each)) is not None for each in changed) < 60


def test_a_checker_that_reads_less_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative controls: fields that nothing reads, budgets that nothing reads, parameters out of range."""

    def kept(where: str, data: Any, needs: Any, may: Any = ()) -> Any:
        return {key: value for key, value in data.items() if key in {*needs, *may}}

    data = json.loads(json.dumps(chain().to_json()))
    params = next(path for path in places(data) if path[-1:] == ("params",) and at(data, path))
    for place, wrong, path, value in (
        ("_strict.keys", kept, ("setting", "sample", "extra"), 1),
        ("_setting._account", lambda setting: None, ("setting", "norms", "budgets", "W_9"), {"op": 2.0}),
        ("_covers.within", lambda choice, ranges: None, (*params, "more"), 1.0),
    ):
        changed = put(data, path, value)
        assert contradiction(changed) is None
        with monkeypatch.context() as patch:
            patch.setattr(f"boundcalc.proof.second.{place}", wrong)
            assert contradiction(changed) is not None, place


def test_both_checkers_read_whole_numbers_and_tiny_parameters_alike() -> None:
    """n_train 1000000.0 is refused by both, a parameter 1 is 1.0; a mu near 0 gives both the same number above 1."""
    data = claiming(chain())
    whole = [path for path in places(data) if type(at(data, path)) is int]
    assert ("setting", "sample", "n_train") in whole
    for path in whole:
        text = json.dumps(put(data, path, float(at(data, path))))
        assert (first(text), alone(text)) == (None, None), path
    params = [path for path in places(data) if "params" in path[:-1]]
    assert params
    for path in params:
        assert contradiction(put(data, path, 1)) is None, path
    risk = next(c for name in SETTINGS for c in proved(name) if c.mu is not None and c.levels)
    tiny = json.dumps(claiming(risk) | {"mu": 5e-324})
    assert first(tiny) == pytest.approx(alone(tiny))


def test_nested_residuals_do_not_overflow_the_stack() -> None:
    document = chain().to_json()
    layer: dict[str, Any] = {"layer": "activation"}
    for _ in range(3000):
        layer = {"layer": "residual", "branch": [layer]}
    document["setting"]["architecture"]["layers"] = [layer]
    with pytest.raises(CertificateError):
        Certificate.from_json(document)
