"""Models of the transformers library, made from configs: every format, every parameter.

Skipped where torch or transformers is not installed; the same readers and families are tested without them elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boundcalc import Sample, Setting, compare
from boundcalc.checkpoints import Options, audit
from boundcalc.proof.checker import check
from tests.checkpoints.live import GPT2, GROUPED, SMALL, VIT, hf, seeded, torch
from tests.checkpoints.zoo import NARROW, OPT, ZOO
from tests.proof import alone

pytestmark = pytest.mark.filterwarnings("ignore")
MAKERS: dict[str, Callable[[], Any]] = {
    "BertModel": lambda: hf.BertModel(hf.BertConfig(**SMALL)),
    "BertForMaskedLM": lambda: hf.BertForMaskedLM(hf.BertConfig(**SMALL)),
    "GPT2Model": lambda: hf.GPT2Model(hf.GPT2Config(**GPT2)),
    "GPT2LMHeadModel": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2)),
    "GPT2ForSequenceClassification": lambda: hf.GPT2ForSequenceClassification(hf.GPT2Config(**GPT2)),
    "LlamaForCausalLM": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED)),
    "Qwen2 tied": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**GROUPED, tie_word_embeddings=True)),
    "LlamaForSequenceClassification": lambda: hf.LlamaForSequenceClassification(
        hf.LlamaConfig(**GROUPED, pad_token_id=0)
    ),
    "BertForMaskedLM untied": lambda: hf.BertForMaskedLM(hf.BertConfig(**SMALL, tie_word_embeddings=False)),
    "RobertaForMaskedLM untied": lambda: hf.RobertaForMaskedLM(hf.RobertaConfig(**SMALL, tie_word_embeddings=False)),
    "ElectraModel": lambda: hf.ElectraModel(hf.ElectraConfig(**NARROW)),
    "ElectraForPreTraining": lambda: hf.ElectraForPreTraining(hf.ElectraConfig(**NARROW)),
    "OPTForSequenceClassification": lambda: hf.OPTForSequenceClassification(hf.OPTConfig(**OPT)),
    "DeiTModel": lambda: hf.DeiTModel(hf.DeiTConfig(**VIT)),
    "ViTModel": lambda: hf.ViTModel(hf.ViTConfig(**VIT)),
    "ViTForImageClassification": lambda: hf.ViTForImageClassification(hf.ViTConfig(**VIT, num_labels=5)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_every_parameter_is_accounted_for_in_every_format(name: str, tmp_path: Path) -> None:
    model = seeded(MAKERS[name])
    model.save_pretrained(tmp_path / "whole")
    model.save_pretrained(tmp_path / "parts", max_shard_size="8KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    found = audit(tmp_path / "whole")
    account = found.account
    assert account.balanced
    assert account.unknown == []
    assert account.doubts == ()
    assert account.total == sum(p.numel() for p in model.parameters())
    assert all(line.reason for line in account.lines if line.unused)
    want = found.norms().to_json()
    assert audit(tmp_path / "parts").norms().to_json() == want
    live = audit(model)  # which is run beside what is read of it
    assert live.norms().to_json() == want
    assert live.parity is not None
    torch.save(model.state_dict(), tmp_path / "w.pt")
    saved = audit(tmp_path / "w.pt", family=found.family, options=Options(settings=model.config.to_dict()))
    assert saved.norms().to_json() == want


@pytest.mark.parametrize(
    "name", ["BertForMaskedLM", "GPT2LMHeadModel", "LlamaForCausalLM", "ViTForImageClassification"]
)
def test_bfloat16(name: str, tmp_path: Path) -> None:
    model = seeded(MAKERS[name]).to(torch.bfloat16)
    model.save_pretrained(tmp_path / "narrow", max_shard_size="8KB")
    found = audit(tmp_path / "narrow")
    assert audit(model).norms() == found.norms()
    wide = audit(model.to(torch.float64))  # the same numbers
    for key, m in wide.measured.items():
        assert m.fro is None or found.measured[key].fro == pytest.approx(m.fro, rel=1e-12)


@pytest.mark.parametrize("name", ["bert", "bloom", "qwen3", "olmo2", "t5 gated"])
def test_bounds_of_trained_models_pass_the_second_checker(name: str) -> None:
    """It once asked joint score matrices for budgets of the offsets that they hold."""
    found = audit(ZOO[name].make(), seed=1)
    setting = Setting(found.architecture, found.norms(), Sample(n_train=10**9))
    certificate = compare(setting, ["trauger"])[0].certificate
    assert float(check(certificate).log_value) == pytest.approx(float(alone.log_value(certificate)), rel=1e-12)
