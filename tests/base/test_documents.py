"""Files that people write: the same data in each form, and a clear line for what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from boundcalc.base.errors import BoundcalcError, CertificateError, InvalidSetting
from boundcalc.base.files import parse_document

SAME = {
    "a.json": '{"T": 4, "names": ["x", "y"], "part": {"d": 0.5}}',
    "a.yaml": "T: 4\nnames: [x, y]\npart: {d: 0.5}\n",
    "a.YML": "T: 4\nnames:\n  - x\n  - y\npart:\n  d: 0.5\n",
    "a.toml": 'T = 4\nnames = ["x", "y"]\n[part]\nd = 0.5\n',
    "a.txt": '{"T": 4, "names": ["x", "y"], "part": {"d": 0.5}}',
}


@pytest.mark.parametrize("name", SAME)
def test_every_form_says_the_same(name: str) -> None:
    if not name.endswith((".json", ".txt", ".toml")):
        pytest.importorskip("yaml")
    assert parse_document(Path(name), SAME[name]) == {"T": 4, "names": ["x", "y"], "part": {"d": 0.5}}


@pytest.mark.parametrize(("name", "why"), [("a.json", "not JSON"), ("a.yaml", "not YAML"), ("a.toml", "not TOML")])
@pytest.mark.parametrize("error", [InvalidSetting, CertificateError])
def test_what_is_none_of_them_is_one_line(name: str, why: str, error: type[BoundcalcError]) -> None:
    if name.endswith("yaml"):
        pytest.importorskip("yaml")
    with pytest.raises(error, match=f"{name} is {why}") as found:
        parse_document(Path(name), "{: [", error)
    assert "\n" not in str(found.value)
