"""Files of config.json as they were published, with smaller sizes: read without a doubt, and compared with the library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boundcalc.checkpoints import audit
from boundcalc.checkpoints.audit import open_model
from boundcalc.lab.reading import held_against, opened
from tests.checkpoints.live import hf, seeded, torch

PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text())


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.filterwarnings("ignore")
def test_a_published_config_is_read_without_a_doubt(name: str, tmp_path: Path) -> None:
    """The types that some of them name are not those of the files, which are in single precision."""
    assert torch is not None
    config = PUBLISHED[name]
    cls = getattr(hf, config["architectures"][0])
    (tmp_path / "config.json").write_text(json.dumps(config))
    seeded(lambda: cls(cls.config_class.from_pretrained(tmp_path))).save_pretrained(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    found = audit(tmp_path / "m")
    assert found.account.doubts == ()
    assert found.account.unknown == []
    assert found.account.balanced
    checkpoint, hand, _ = opened(str(tmp_path / "m"), None)
    parity, _, why = held_against(open_model(checkpoint), hand)
    assert parity is not None, why
    assert parity.worst < 1e-8
    strange = tmp_path / "m" / "config.json"
    strange.write_text(json.dumps(config | {"qk_clip": 3.0}))
    assert [doubt.partition(" ")[0] for doubt in audit(tmp_path / "m").account.doubts] == ["qk_clip"]
