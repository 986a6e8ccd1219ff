"""Models of the transformers library: every format and parameter, its logits, published configs, the table of families.

Skipped where torch or transformers is not installed; the same readers and families are tested without them elsewhere.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc import Sample, Setting, certify, compare
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.checkpoints import CheckpointError, Options, audit
from boundcalc.checkpoints.audit import open_model
from boundcalc.checkpoints.parity import compare as forward_check
from boundcalc.lab.reading import held_against, opened
from boundcalc.layers.base import of_class
from boundcalc.proof.checker import check
from boundcalc.setting import Attention, Budget, Linear, SoftCap
from tests.checkpoints.live import GROUPED, hf, seeded, torch
from tests.checkpoints.table import rows, shown
from tests.checkpoints.zoo import GEMMA2, ZOO
from tests.proof import alone

pytestmark = pytest.mark.filterwarnings("ignore")
HEADS = {
    **{"BertModel": "bert", "BertForMaskedLM": "bert", "GPT2Model": "gpt2", "GPT2LMHeadModel": "gpt2"},
    **{"GPT2ForSequenceClassification": "gpt2", "LlamaForCausalLM": "llama", "LlamaForSequenceClassification": "olmo2"},
    **{"ElectraModel": "electra", "ElectraForPreTraining": "electra", "OPTForSequenceClassification": "opt"},
    **{"DeiTModel": "deit", "ViTForImageClassification": "vit"},
}
"""Classes with other heads than in the zoo, and of which model there they have the sizes."""


def made(name: str) -> Any:
    kind = ZOO[HEADS[name]]
    config = getattr(hf, name).config_class(**kind.values)
    return seeded(lambda: getattr(hf, name)(config))


@pytest.mark.parametrize("name", HEADS)
def test_every_parameter_is_accounted_for_in_every_format(name: str, tmp_path: Path) -> None:
    model = made(name)
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
    model.to(torch.bfloat16).save_pretrained(tmp_path / "narrow")
    assert audit(tmp_path / "narrow", seed=1).norms() == audit(model, seed=1).norms()


def test_a_trained_query_pools_rows() -> None:
    """Its bound passes the second checker; of a query that nearly cancels no entry is below the exact one."""
    model = ZOO["siglip vision"].make()
    found = audit(model, seed=1)
    behind = found.architecture.with_fields(classes=1, layers=(*found.architecture.stages, Linear("readout", 16, 1)))
    norms = replace(found.norms(), budgets={**found.norms().budgets, "readout": Budget(op=1.0)})
    certificate = compare(Setting(behind, norms, Sample(n_train=10**9)), ["T-free"])[0].certificate
    assert float(check(certificate).log_value) == pytest.approx(float(alone.log_value(certificate)), rel=1e-12)
    with pytest.raises(InvalidSetting, match="folded into the trained query"):
        found.with_bits(64)
    with pytest.raises(CheckpointError, match="distance from a reference is not measured of attention by a trained"):
        audit(model, reference=model)
    head = model.head.attention
    with torch.no_grad():  # rows whose products are large and add up to almost nothing
        head.in_proj_weight[16:20, ::2], head.in_proj_weight[16:20, 1::2] = 1e8, -1e8
        head.in_proj_weight[0] = 1e8 + torch.arange(16)
        model.head.probe[0, 0] = torch.tensor([1.0, -1.0] * 8)
    row, maps, offset = (value.detach().numpy() for value in (model.head.probe, head.in_proj_weight, head.in_proj_bias))
    fractions = np.vectorize(lambda value: Fraction(float(value)), otypes=[object])
    queries, below = open_model(model).place("q", 2).fetch(), 0
    for part, query in zip(np.split(np.arange(16), 4), queries, strict=True):
        exact = (fractions(maps[part]) @ fractions(row.ravel()) + fractions(offset[part])) @ fractions(maps[16 + part])
        plain = (maps[part] @ row.ravel() + offset[part]) @ maps[16 + part]
        assert (abs(fractions(query[:, 0])) >= abs(exact)).all()
        below += (abs(fractions(plain)) < abs(exact)).sum()
    assert below  # the control: plain sums are sometimes below
    model.head.probe = torch.nn.Parameter(torch.ones(1, 1, 8))
    with pytest.raises(CheckpointError, match=r"head\.probe: 8 numbers do not fit its maps of queries and keys"):
        audit(model)


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
    checkpoint, hand = opened(str(tmp_path / "m"), None)
    parity, _, why = held_against(open_model(checkpoint), hand)
    assert parity is not None, why
    assert parity.worst < 1e-8


def test_the_last_row_of_a_tower_is_read_without_its_module(tmp_path: Path) -> None:
    model = ZOO["siglip text"].make()
    model.save_pretrained(tmp_path)
    x = np.random.default_rng(0).integers(4, 31, (30, 8))
    y = model(torch.tensor(x)).pooler_output.argmax(1).numpy()
    found = certify(tmp_path, module="none", test=(x, y))
    assert found.scores["error"].facts == {"errors": 0, "n": 30}


@pytest.mark.parametrize("end", [16, 2])
def test_a_tower_that_reads_its_end_token_is_that_of_sequences_cut_off_there(end: int, tmp_path: Path) -> None:
    """With an `eos_token_id` of 2 the library reads the row of the largest token."""
    model = ZOO["clip text"].make(eos_token_id=end)
    model.save_pretrained(tmp_path)
    rng, last = np.random.default_rng(0), 30 if end == 2 else end
    x = rng.integers(3, 16, (30, 8))
    x[:, 5] = last
    y = model(torch.tensor(x)).text_embeds.argmax(1).numpy()
    for module in (None, "none"):
        found = certify(tmp_path, (x[:, :6], y), module=module, methods=["norms"])
        assert found.errors == (0, 30)
    for wrong in (x, np.roll(x[:, :6], 1, 1), x[:, :5]):
        assert certify(tmp_path, (wrong, y), methods=["norms"])["norms: best"].refusal is not None
        with pytest.raises(BoundcalcError, match=f"the first token {last}, so every sequence ends with it"):
            certify(tmp_path, (wrong, y), module="none", methods=["norms"])


def test_the_factor_of_rotations_is_read(tmp_path: Path) -> None:
    model = ZOO["llama yarn"].make()
    model.save_pretrained(tmp_path)
    assert forward_check(model, open_model(tmp_path)).worst < 1e-9
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())  # the negative control: without the factor it is another function
    path.write_text(json.dumps({name: value for name, value in config.items() if not name.startswith("rope_")}))
    with pytest.raises(CheckpointError, match="the rotations of the module multiply by"):
        forward_check(model, open_model(tmp_path))


def test_a_distance_is_no_less_than_what_rounding_hides(tmp_path: Path) -> None:
    """Gains of queries are 1 + w, and these two are 1 in floats."""
    for name, value in (("before", 1e-20), ("after", 3e-20)):
        model = ZOO["gemma3"].make().double()
        with torch.no_grad():
            model.model.layers[0].self_attn.q_norm.weight.fill_(value)
        model.save_pretrained(tmp_path / name)
    far = audit(tmp_path / "after", reference=tmp_path / "before").distances
    gain = far["norm_Q.gain[0]"]
    assert (gain.sup or 0) >= 2e-20
    assert (gain.sup or 0) < 1e-14


def test_a_reference_with_another_constant_is_refused(tmp_path: Path) -> None:
    """A constant times the difference of two tables is not the distance where each has a constant of its own."""
    for name, value in (("before", 2.0), ("after", 3.0)):
        ZOO["granite"].make(embedding_multiplier=value).save_pretrained(tmp_path / name)
    assert audit(tmp_path / "after", reference=tmp_path / "after").distances
    with pytest.raises(CheckpointError, match="another constant than the model"):
        audit(tmp_path / "after", reference=tmp_path / "before")


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


def test_the_table_of_families_is_that_of_the_forward_checks() -> None:
    """Refresh it by `python -m tests.checkpoints.table`."""
    assert torch is not None
    assert shown() == "\n".join(rows()) + "\n"
