"""What is particular to Gemma: a factor of the embedding that a file's type rounds, and caps that null switches off."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from boundcalc.checkpoints import audit
from boundcalc.setting import Attention, SoftCap
from boundcalc.setting.layer import of_class
from tests.checkpoints.live import GROUPED, torch
from tests.checkpoints.zoo import GEMMA2, ZOO

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("width", [12, 20, 24])
def test_the_embedding_has_the_factor_of_the_library_or_a_little_more(width: int, dtype: str, tmp_path: Path) -> None:
    model = ZOO["gemma"].make(hidden_size=width).to(getattr(torch, dtype))
    model.save_pretrained(tmp_path)
    rows = model.model.embed_tokens(torch.arange(31)).double().norm(dim=1).max().item()
    exact = math.sqrt(width) * model.model.embed_tokens.weight.double().norm(dim=1).max().item()
    found = audit(tmp_path).measured["embedding"].row
    assert found is not None
    unit = {"float64": 1e-7, "float32": 1e-6, "bfloat16": 8e-3, "float16": 1e-3}[dtype]  # products are rounded as well
    assert max(rows * (1 - unit), exact) <= found <= exact * (1 + unit)


def test_null_is_no_cap_and_silence_is_the_default(tmp_path: Path) -> None:
    """A cap that the model does not have would bound its logits falsely."""
    model = ZOO["gemma2"].make(**GROUPED, **GEMMA2 | {"final_logit_softcapping": None, "attn_logit_softcapping": None})
    model.save_pretrained(tmp_path)
    stages = audit(tmp_path).architecture.stages
    assert not list(of_class(stages, SoftCap))
    assert {layer.cap for layer in of_class(stages, Attention)} == {None}
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in config.items() if "softcapping" not in name}))
    stages = audit(tmp_path).architecture.stages
    assert [layer.cap for layer in of_class(stages, SoftCap)] == [30.0]
    assert {layer.cap for layer in of_class(stages, Attention)} == {50.0}
