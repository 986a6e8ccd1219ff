"""Certificates changed at random: the checker refuses in one line, or verifies something weaker; it never breaks."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Any

import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import Checked, check, verify
from tests.proof.both import at, places
from tests.proof.samples import SETTINGS, proved

CASES = 2500

JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 12, 3.5, -0.0, 1e-320, 1e308, -1e308, float("nan"), float("inf")),
    *(10**19, 10**400, -(10**400), "", "zero", "T1", "T5", "T10", "Tpub", "W_V[0]", "softmax", "x\ny", "x" * 1000),
    *([], {}, [[]], [None], [1, 2], {"a": 1}, {"lemma": "zero"}, {"op": 1.0}),
)
NEW_KEYS = ("extra", "W_V[1]", "rank", "Sp", "F", "block", "layers", "measured", "eps", "depth", "mu", "alpha", "nats")


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
        if kind < 0.4:
            owner[step] = copy.deepcopy(rng.choice(JUNK))
        elif kind < 0.6:
            del owner[step]
        elif kind < 0.75 and isinstance(owner[step], float) and abs(owner[step]) < 1e300:
            owner[step] *= rng.choice((0.5, 0.99, 1.01, 2.0, -1.0, 1e10))
        elif kind < 0.9:
            owner[step] = copy.deepcopy(at(data, rng.choice(every)))
        elif isinstance(owner, dict):
            owner[rng.choice(NEW_KEYS)] = copy.deepcopy(rng.choice(JUNK))
    return data


def complaint(data: Any) -> str | None:
    """What is wrong with how a certificate is taken, or None."""
    try:
        certificate = Certificate.from_json(data)
        checked = verify(certificate)
    except CertificateError as error:
        text = str(error)
        return None if "\n" not in text and 0 < len(text) < 500 else f"not one line: {text[:200]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if checked.log_value <= certificate.log_value + 1e-9:
        return None
    return f"verified a claim of {certificate.log_value} at {checked.log_value}"


@pytest.mark.parametrize("name", SETTINGS)
def test_random_changes_are_refused_or_harmless(name: str) -> None:
    rng = random.Random(name)
    documents = [certificate.to_json() for certificate in proved(name)]
    found = (complaint(mutated(rng.choice(documents), rng)) for _ in range(CASES // len(SETTINGS)))
    assert [text for text in found if text] == []


def test_the_fuzzer_changes_documents_and_would_complain(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    document = proved("edelman")[0].to_json()
    assert complaint(document) is None
    assert sum(mutated(document, rng) != document for _ in range(100)) > 80

    def broken(_: Certificate) -> Checked:
        raise ZeroDivisionError("division by zero")

    def generous(certificate: Certificate) -> Checked:
        return replace(check(certificate), log_value=certificate.log_value + 1)

    for checker, word in ((broken, "ZeroDivisionError"), (generous, "verified")):
        monkeypatch.setattr("tests.proof.test_fuzz.verify", checker)
        assert word in str(complaint(document))


def test_nested_residuals_do_not_overflow_the_stack() -> None:
    document = proved("edelman")[0].to_json()
    layer: dict[str, Any] = {"layer": "activation"}
    for _ in range(3000):
        layer = {"layer": "residual", "branch": [layer]}
    document["setting"]["architecture"]["layers"] = [layer]
    assert complaint(document) is None
