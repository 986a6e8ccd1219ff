"""The file says everything and nothing else: whatever is left out, added, or of another type is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boundcalc.base import schema
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.schema import read_complete
from boundcalc.engine.search import Search
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check, verify
from boundcalc.setting import Setting
from boundcalc.statements import STATEMENTS_VERSION
from boundcalc.statements.posthoc import Measured, Seen
from boundcalc.theorems import POLICIES
from tests.laws.settings import settings
from tests.proof.both import Place, at, places, put
from tests.proof.samples import SETTINGS, proved

Json = dict[str, Any]


def of_kind(data: Any, kind: type | tuple[type, ...]) -> Iterator[Place]:
    """Where values of a type are."""
    for path in places(data):
        if isinstance(at(data, path), kind) and not isinstance(at(data, path), bool):
            yield path


def accepted(data: Any) -> bool:
    try:
        Certificate.from_json(data)
    except CertificateError:
        return False
    return True


def document(name: str, strategy: str) -> Json:
    """A certificate with one level, of the samples."""
    found = next(c for c in proved(name) if c.strategy == strategy and c.levels).to_json()
    return json.loads(json.dumps(found | {"levels": found["levels"][:1]}))


def without(data: Json) -> Iterator[tuple[Place, Json]]:
    """The document with one field left out, at any depth (covers, params and budgets list what there is)."""
    for path in of_kind(data, dict):
        listed = path and path[-1] in ("covers", "params", "budgets", "distance")
        if not listed and path[-2:-1] != ("budgets",):
            yield from (((*path, key), put(data, (*path, key))) for key in at(data, path))


def with_more(data: Json) -> Iterator[tuple[Place, Json]]:
    """The document with one field more, at any depth (a cover more is for the checker to refuse)."""
    for path in of_kind(data, dict):
        if not path or path[-1] not in ("covers", "params"):
            yield path, put(data, (*path, "later"), 1)


MAY_BE_NULL = ("d_head", "d_ff", "kv_heads", "temperature", "lipschitz", "C")
"""Null is a value of these fields: it means that there is none."""


def with_junk(data: Json) -> Iterator[tuple[Place, Json]]:
    """The document with null, a word, a truth value, a list, NaN or infinity for a number."""
    for path in of_kind(data, (int, float)):
        for junk in (None, "1", True, [1], {}, float("nan"), float("inf"), -float("inf")):
            if junk is not None or path[-1] not in MAY_BE_NULL:
                yield (*path, repr(junk)), put(data, path, junk)


@pytest.mark.parametrize("name", ["bert", "heads", "measured"])
@pytest.mark.parametrize("change", [without, with_more, with_junk], ids=["left out", "added", "junk"])
def test_nothing_is_filled_in_ignored_or_converted(name: str, change: Callable[..., Any]) -> None:
    data = document(name, "chain")
    assert accepted(data)
    assert [place for place, changed in change(data) if accepted(changed)] == []


def test_the_law_notices_a_reader_that_fills_in_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the reader of format 1 took what was missing from the installed version."""
    monkeypatch.setattr(schema, "_refuse_difference", lambda *_: None)
    taken = [place for place, changed in without(document("bert", "chain")) if accepted(changed)]
    assert {("setting", "architecture", "depth"), ("setting", "sample", "delta")} <= set(taken)


def test_other_versions_are_refused_by_name() -> None:
    data = document("bert", "chain")
    for key, value, why in (
        ("format", "boundcalc-certificate/1", "boundcalc-certificate/1"),
        ("statements", STATEMENTS_VERSION + 1, f"version {STATEMENTS_VERSION + 1}"),
        ("statements", True, "version True"),
    ):
        with pytest.raises(CertificateError, match=why):
            Certificate.from_json(data | {key: value})


@pytest.mark.parametrize("sample", [None, {}, [], "x", {"margin": None}, {"train_error": 0.0}, {"candidates": 14}])
def test_a_record_of_the_sample_that_is_none_is_a_certificate_error(sample: Any) -> None:
    """In memory as in a file."""
    certificate = replace(proved("edelman")[0], measured=sample or {})
    with pytest.raises(CertificateError):
        check(certificate)
    with pytest.raises((InvalidSetting, TypeError)):
        Measured(sample=Seen(**(sample or {})))
    with pytest.raises(CertificateError):
        verify(Certificate.from_json(proved("edelman")[0].to_json() | {"looked_at": {"norms": None, "sample": sample}}))


def test_every_setting_is_written_whole_and_read_back() -> None:
    for setting in settings("complete forms", 60):
        data = json.loads(json.dumps(setting.complete_json(), allow_nan=False))
        again = read_complete(Setting, data, "setting")
        assert again == setting
        assert again.complete_json() == data
        assert set(data["architecture"]) >= {"depth", "seq_len", "style", "eps", "layers"}


def test_an_unchecked_certificate_is_not_written(tmp_path: Path) -> None:
    found = Search(SETTINGS["edelman"], POLICIES["best"]).candidates("gap")[0].certificate
    with pytest.raises(CertificateError, match="claims"):
        found.save(tmp_path / "c.json")
    assert not (tmp_path / "c.json").exists()
    checked = check(found)
    checked.certificate.save(tmp_path / "c.json")
    assert verify(Certificate.load(tmp_path / "c.json")).log_value == checked.log_value
