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
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.checkpoints import CheckpointError, audit
from boundcalc.checkpoints.describe import describe
from boundcalc.checkpoints.families.read import read_mapping
from boundcalc.checkpoints.parity import Parity
from boundcalc.checkpoints.readers import open_checkpoint
from boundcalc.cli import main
from tests.checkpoints.layouts import LAYOUTS, made, torch
from tests.checkpoints.live import seeded
from tests.lab.certify.models import RotaryGPT


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
    "normalised after": ({"style": "post"}, ""),  # there is no last normalisation then, and the file has one
    "another epsilon": ({"eps": 1e-6}, "norm_attention"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mapping_is_refused_by_the_forward_check(name: str) -> None:
    module = made("nanoGPT")
    change, place = WRONG[name]
    wrong = deepcopy(MADE)
    wrong["architecture"] |= change
    with pytest.raises(BoundcalcError, match=rf"differ in .*{place}" if place else "has not"):
        audit(module, mapping=wrong)
    if place:
        assert audit(module.state_dict(), mapping=wrong).parity is None


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


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "not JSON"), ('{"tensors": {}}', "needs 'architecture'"), ('{"tensor": {}}', "did you mean")],
)
def test_a_file_that_is_no_mapping_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text(text)
    with pytest.raises(BoundcalcError, match=says):
        read_mapping(tmp_path / "map.json")


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


def test_rotations_of_a_mapping_are_compared() -> None:
    """They cost no bound anything, but without them nothing could be compared."""
    module = seeded(RotaryGPT)
    mapping = describe(module, open_checkpoint(module))[0]
    assert mapping["rotary"] == {"theta": 10000.0, "pairs": True}
    mapping["architecture"]["longest"] = 8
    for wrong in ({"pairs": False}, {"theta": 100.0}):
        with pytest.raises(CheckpointError, match="differ in"):
            audit(module, mapping=mapping | {"rotary": mapping["rotary"] | wrong})


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
    assert run("--template", "map.json", *own)[0] == run("--mapping", "map.json", *own)[0] == 0
    Path("map.json").write_text(Path("map.json").read_text().replace('"gelu"', '"silu"'))  # edited by hand
    assert run("--mapping", "map.json", *own)[0] != 0
    assert run("--template", "map.json")[0] != 0  # what was edited is not replaced
    assert run("--template", "m.pt", "--force")[0] != 0  # nor an input
    for word in ("nothere.py:make", "model.py:nothing", "model"):
        assert run("--mapping", "map.json", "--compare", word)[0] == 2
