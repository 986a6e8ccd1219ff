"""Models of no known family: mappings in all their spellings, and modules that describe themselves."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from boundcalc import Sample, Setting, evaluate
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints import CheckpointError, audit
from boundcalc.checkpoints.audit import open_model
from boundcalc.checkpoints.describe import describe
from boundcalc.checkpoints.families.read import read_mapping
from boundcalc.checkpoints.forward import rotary
from boundcalc.checkpoints.parity import Parity, compare
from boundcalc.checkpoints.readers import open_checkpoint
from boundcalc.cli import main
from tests.checkpoints.layouts import LAYOUTS, made, torch


@cache
def described(name: str) -> tuple[dict[str, Any], Parity]:
    return describe(made(name), open_checkpoint(made(name)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_module_describes_itself_and_is_bounded_as_it_is(name: str) -> None:
    module = made(name)
    mapping, parity = described(name)
    assert parity.worst < 1e-12
    assert len(parity.places) >= 15
    found = audit(module, mapping=mapping)
    assert found.account.balanced
    assert found.account.unknown == []
    value = evaluate(Setting(found.architecture, found.norms(), Sample(n_train=10**12)), "T-free")
    assert value.kind == "a_posteriori"


MADE, _ = described("nanoGPT")
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "relu for gelu": ({"activation": "relu"}, "W_2"),
    "not causal": ({"causal": False}, "W_O"),
    "heads": ({"heads": 2}, "W_O"),
    "normalised after": ({"style": "post"}, "W_O"),
    "another epsilon": ({"eps": 1e-6}, "norm_attention"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mapping_is_refused_by_the_forward_check(name: str) -> None:
    module = made("nanoGPT")
    change, place = WRONG[name]
    wrong = deepcopy(MADE)
    wrong["architecture"] |= change
    seen = open_model(module, read_mapping(wrong))
    with pytest.raises(CheckpointError, match=rf"differ in .*{place}"):
        compare(module, seen, seen.architecture)
    idle = name == "normalised after"  # which has no last normalisation, and the file has one
    with pytest.raises(
        InvalidSetting if idle else CheckpointError, match="has not" if idle else rf"differ in .*{place}"
    ):
        audit(module, mapping=wrong)
    if not idle:
        assert audit(module, mapping=wrong, compare=False).parity is None


@pytest.mark.parametrize("pair", [("W_Q", "W_K"), ("W_K", "W_V")])
def test_swapped_roles_are_refused(pair: tuple[str, str]) -> None:
    module = made("minGPT, first edition")
    mapping, _ = described("minGPT, first edition")
    other = {pair[0]: pair[1], pair[1]: pair[0]}
    kinds: dict[str, str] = {k: v.replace(k[:1], v[:1]) for k, v in other.items()} | {
        f"b_{a[2:]}": f"b_{b[2:]}" for a, b in other.items()
    }
    roles = {name: role.removesuffix(".T") for name, role in mapping["tensors"].items()}
    swapped = {n: f"{kinds.get(roles[n], roles[n])}{'.T' * r.endswith('.T')}" for n, r in mapping["tensors"].items()}
    assert swapped != mapping["tensors"]
    seen = open_model(module, read_mapping(mapping | {"tensors": swapped}))
    with pytest.raises(CheckpointError, match="differ in"):
        compare(module, seen, seen.architecture)


@pytest.mark.parametrize("wrapper", ["_orig_mod.", "module.", "model.", "model._orig_mod."])
def test_what_wrappers_put_before_names_is_left_out(wrapper: str) -> None:
    module = made("nanoGPT untied")
    state = {wrapper + name: value for name, value in module.state_dict().items()}
    mapping, _ = described("nanoGPT untied")
    want = audit(module, mapping=mapping).norms().to_json()
    assert audit(state, mapping=mapping).norms().to_json() == want


def _with(**change: Any) -> dict[str, Any]:
    found = deepcopy(MADE)
    for part, value in change.items():
        found[part] = found.get(part, {}) | value if isinstance(value, dict) else value
    return found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tensors": {"lm_head.weight": "norm_attention.bias"}}, r"role of a tensor.*norm_attention.offset"),
        ({"tensors": {"lm_head.weight": "?"}}, r"key is like W_V"),
        ({"tensors": {"lm_head.weight": "W_3.T"}}, r"lm_head.weight is W_3, which the architecture.*has not"),
        ({"architecture": {"bias": False}}, "'bias'"),
        ({"architecture": {"by_group": "sixths"}}, "by_group"),
        ({"scales": {"W_pool": 2.0}}, "the role of a scale"),
        ({"scales": {"embedding": -1.0}}, "positive|above 0"),
        ({"architecture": {"plain": "no"}}, "true or false"),
        ({"architecture": {"style": "before"}}, "style"),
        ({"architecture": {"qk_eps": 1e-6}}, "have tensors norm_Q.gain, norm_K.gain and a qk_eps"),
        ({"rotary": {"angle": 3}}, "angle"),
        ({"unheard": 1}, "unheard"),
    ],
)
def test_a_mapping_that_is_wrong_says_what_would_be_right(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        audit(made("nanoGPT"), mapping=_with(**change))


def test_everything_mapped_can_be_mapped_from_python(tmp_path: Path) -> None:
    module = made("nanoGPT")
    (tmp_path / "map.json").write_text(json.dumps(MADE))
    want = audit(module, mapping=tmp_path / "map.json").norms().to_json()
    assert audit(module, mapping=MADE).norms().to_json() == want
    headless = _with()
    del headless["architecture"]["heads"]
    assert audit(module, mapping=headless, heads=4).norms().to_json() == want
    with pytest.raises(CheckpointError, match="--heads 2, but heads is 4"):
        audit(module, mapping=MADE, heads=2)


@pytest.mark.parametrize("pairs", [True, False])
def test_rotations_that_a_mapping_says(pairs: bool) -> None:
    """They cost no bound anything, but without them nothing could be compared."""

    class Rotated(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = made("minGPT, first edition")
            self.tok_emb, self.blocks = self.inner.tok_emb, self.inner.blocks
            self.ln_f, self.head = self.inner.ln_f, self.inner.head

        def forward(self, tokens: Any) -> Any:
            x = self.tok_emb(tokens)
            for block in self.blocks:
                x = x + self._look(block.attn, block.ln1(x))
                x = x + block.mlp(block.ln2(x))
            return self.head(self.ln_f(x))

        def _look(self, attn: Any, x: Any) -> Any:
            n, rows, d = x.shape
            q, k, v = (f(x).view(n, rows, 2, d // 2).transpose(1, 2) for f in (attn.query, attn.key, attn.value))
            turn = rotary(100.0, pairs=pairs)
            q, k = (torch.tensor(turn(y.detach().numpy(), None)) for y in (q, k))
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return attn.proj(y.transpose(1, 2).flatten(2))

    module = Rotated()
    state = {k: v for k, v in module.state_dict().items() if not k.startswith("inner.") and "pos_emb" not in k}
    mapping = deepcopy(described("minGPT, first edition")[0]) | {"rotary": {"theta": 100.0, "pairs": pairs}}
    mapping["tensors"] = {name: role for name, role in mapping["tensors"].items() if role != "positions"}
    mapping["architecture"]["longest"] = 10
    seen = open_model(state, read_mapping(mapping))
    assert compare(module, seen, seen.architecture).worst < 1e-12
    wrong = open_model(state, read_mapping(mapping | {"rotary": {"theta": 100.0, "pairs": not pairs}}))
    with pytest.raises(CheckpointError, match="differ in"):
        compare(module, wrong, wrong.architecture)


def test_template_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"model": made("nanoGPT").state_dict()}, "m.pt")
    Path("model.py").write_text("from tests.checkpoints.layouts import NanoGPT\n\ndef make():\n    return NanoGPT()\n")

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["norms", "m.pt", *words])
        return done.exit_code, " ".join(done.output.split())

    code, text = run("--template", "guess.json")
    assert code == 2
    assert "add --compare" in text
    own = ("--compare", "model.py:make")
    for words in (("--template", "map.json", *own), ("--mapping", "map.json", *own)):
        code, text = run(*words)
        assert code == 0, text
        assert "ompared with a forward pass" in text
    assert "not compared" in run("--mapping", "map.json")[1]
    Path("map.json").write_text(Path("map.json").read_text().replace('"gelu"', '"silu"'))  # edited by hand
    assert run("--mapping", "map.json", *own)[0] != 0
    assert run("--template", "map.json")[0] != 0  # what was edited is not replaced
    assert run("--template", "m.pt", "--force")[0] != 0  # nor an input
    for word in ("nothere.py:make", "model.py:nothing", "model"):
        assert run("--mapping", "map.json", "--compare", word)[0] == 2
