"""JSON that two readers could understand differently is refused, wherever it stands in the file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.files import parse_json, read_json


def document(rng: random.Random, depth: int) -> Any:
    """A random JSON value."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice((1, -0.5, 1e300, "a", "", None, True, 10**30))
    if rng.random() < 0.5:
        return [document(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice("abcdef") * rng.randrange(3): document(rng, depth - 1) for _ in range(rng.randrange(4))}


def test_what_has_one_meaning_is_read_as_it_is() -> None:
    rng = random.Random(0)
    for _ in range(300):
        value = document(rng, 5)
        assert parse_json(json.dumps(value), "here") == value


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400", '{"a": 1, "a": 1}'])
@pytest.mark.parametrize("frame", ["%s", "[%s]", '{"b": [1, {"c": %s}]}'])
def test_two_meanings_are_refused_at_every_depth(word: str, frame: str) -> None:
    json.loads(frame % word)  # the standard library takes it: that is why there is a reader of our own
    with pytest.raises(InvalidSetting, match=r"^n\.json (gives the key 'a' twice|holds )") as caught:
        parse_json(frame % word, "n.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", "[1,]", "[" * 100_000, "9" * 10_000, "\ufeff{}"])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(CertificateError, match=r"^the text is not JSON"):
        parse_json(text, "the text", CertificateError)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "n.json"
    path.write_text('{"a": [0.1]}', encoding="utf-8")
    assert read_json(path, "--norms") == {"a": [0.1]}
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidSetting, match=r"cannot read --norms .*: it is not text"):
        read_json(path, "--norms")
