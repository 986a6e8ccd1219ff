"""`certify`: every number is that of the model at hand, and a setting that does not describe it gives none."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import boundcalc
from boundcalc import Data, PredictorCertificate, verify_predictor
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.checkpoints.describe import describe
from boundcalc.checkpoints.margins import margins_of
from boundcalc.checkpoints.readers import open_checkpoint
from boundcalc.cli import main
from tests.checkpoints.layouts import NanoGPT, made, torch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def trained() -> Any:
    """A model that says the first token again."""
    torch.manual_seed(0)
    model = NanoGPT()
    x = torch.randint(0, 11, (400, 6))
    rule = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(150):
        loss = torch.nn.functional.cross_entropy(model(x)[0][:, -1], x[:, 0])
        rule.zero_grad()
        loss.backward()
        rule.step()
    return model.eval()


def sample(n: int, seed: int, rows: int = 6) -> tuple[Any, Any]:
    x = np.random.default_rng(seed).integers(0, 11, (n, rows))
    return x, x[:, 0]


@pytest.fixture(scope="module")
def found(trained: Any) -> Any:
    return boundcalc.certify(trained, sample(300, 1), test=sample(200, 2), seed=1)


def test_the_lines_are_those_of_this_model(found: Any, trained: Any) -> None:
    assert found.parity is not None
    assert found.parity.worst < 1e-12
    x, y = sample(200, 2)
    with torch.no_grad():
        wrong = int((trained.double()(torch.tensor(x))[0][:, -1].argmax(-1).numpy() != y).sum())
    certificate = found.certificates["held-out"]
    assert certificate.facts == {"errors": wrong, "n": 200}
    assert found["held-out"].risk == certificate.risk
    assert found["norms: best"].gap is None or found["norms: best"].gap <= 1
    assert {line.method for line in found.lines} == {"norms: best", "held-out", "p2l", "occam", "pac-bayes", "rule"}
    assert all((line.refusal is None) != (line.method in ("p2l", "pac-bayes", "rule")) for line in found.lines)


def test_margins_are_those_of_the_outputs(found: Any, trained: Any) -> None:
    x, y = sample(300, 1)
    with torch.no_grad():
        logits = trained.double()(torch.tensor(x))[0][:, -1].numpy()
    own = logits[np.arange(300), y]
    logits[np.arange(300), y] = -math.inf
    margins, gamma = own - logits.max(1), found.setting.sample.margin
    assert math.log2(gamma).is_integer()
    assert math.isclose(found.setting.sample.train_error, (margins <= gamma).mean())
    assert found.errors == (int((margins <= 0).sum()), 300)
    assert set(found.setting.sample.measured) == {"margin", "train_error"}


def test_the_model_in_few_bits_is_certified_and_decodes_to_the_bit(trained: Any, tmp_path: Path) -> None:
    """The risk of the decoded module, counted by the module itself; with its own arithmetic or the description's."""
    from boundcalc.lab._given import GivenNetwork

    x, y = sample(1500, 5)
    start = trained.state_dict()  # learned from other data; what is certified lies a little beside it
    near = NanoGPT()
    near.load_state_dict({k: v + 0.1 * torch.sign(v) * (v.abs() > v.abs().max() * 0.97) if v.is_floating_point() else v
                          for k, v in start.items()})  # fmt: skip
    init, file = tmp_path / "init.pt", tmp_path / "near.pt"
    torch.save(start, init)
    torch.save(near.state_dict(), file)
    found = boundcalc.certify(near, (x, y), methods=["occam"], reference=init)
    certificate = found.certificates["occam"]
    assert certificate.risk < 0.5
    assert "from the checkpoint init.pt on" in found["occam"].based_on
    assert found["occam"].certifies == "decoded from the message"
    decoded = NanoGPT().double()
    state = {name: torch.tensor(value) for name, value in found.states["occam"].items()}
    assert not decoded.load_state_dict(state, strict=False).unexpected_keys
    with torch.no_grad():
        wrong = int((decoded(torch.tensor(x))[0][:, -1].argmax(-1).numpy() != y).sum())
    assert certificate.facts["errors"] == wrong
    mapping = describe(near, open_checkpoint(near))[0]
    alone = boundcalc.certify(file, (x, y), mapping=mapping, methods=["occam"], reference=init).certificates["occam"]
    assert alone.evidence.recipe["answers"] == "the architecture as described"
    assert alone.facts == certificate.facts
    outputs = found.outputs
    assert outputs is not None
    network, other = GivenNetwork.of(outputs, init), GivenNetwork.of(outputs)
    (written,) = found.save(tmp_path / "proofs")
    read = PredictorCertificate.load(written)
    assert verify_predictor(read, Data(x, y), lambda recipe: network).established
    done = CliRunner().invoke(main, ["verify", str(written)])
    assert "answered by the module NanoGPT; compared with a forward pass" in " ".join(done.output.split())
    with pytest.raises(Exception, match="reference"):
        verify_predictor(certificate, Data(x, y), lambda recipe: other)
    with pytest.raises(InvalidSetting, match="trained model itself"):
        GivenNetwork.of(outputs, file)


def test_tied_tensors_are_written_once_and_buffers_are_on_record() -> None:
    from boundcalc.lab._given import GivenNetwork

    module = made("nanoGPT")
    x, y = sample(40, 1)
    found = boundcalc.certify(module, (x, y), methods=["occam"])
    outputs = found.outputs
    assert outputs is not None
    network = GivenNetwork.of(outputs)
    names = {name for name, _ in module.named_parameters()}  # tied ones once
    assert set(network.trained) == names
    assert set(network.same) | set(network.kept["names"]) == set(module.state_dict())
    changed = {name: value + 0.1 for name, value in network.trained.items()}
    with torch.no_grad():
        for value in module.parameters():
            value.add_(0.1)
        module.double()
        out = module(torch.tensor(x))[0][:, -1].numpy()
    assert np.allclose(network.scores(changed, Data(x, y)), margins_of(out, y).values, atol=1e-6)


def test_ragged_sequences_are_met_one_by_one(trained: Any) -> None:
    x = [np.random.default_rng(i).integers(0, 11, 2 + i % 5) for i in range(60)]
    y = np.array([row[0] for row in x])
    found = boundcalc.certify(trained, (np.array(x, dtype=object), y), methods=["norms"])
    with torch.no_grad():
        wrong = sum(
            int(trained.double()(torch.tensor(r)[None])[0][0, -1].argmax()) != t for r, t in zip(x, y, strict=True)
        )
    trained.float()
    assert found.errors == (wrong, 60)
    with pytest.raises(BoundcalcError, match="labels from 1 to 11"):
        boundcalc.certify(trained, (sample(11, 1)[0], np.arange(1, 12)), methods=["occam"])


@pytest.fixture
def folder(trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The start of a command in a folder with the model and its data."""
    monkeypatch.chdir(tmp_path)
    torch.save(trained.state_dict(), "m.pt")
    Path("model.py").write_text("from tests.checkpoints.layouts import NanoGPT as make\n")
    x, y = sample(60, 3)
    np.savez("train.npz", x=x[::-1], y=y[::-1])
    np.savez("test.npz", x=x, y=y, document=GROUPS)
    lines = [f"{' '.join(map(str, row))},{label},{name}" for row, label, name in zip(x, y, GROUPS, strict=True)]
    Path("test.csv").write_text("x,y,document\n" + "\n".join(lines) + "\n")
    Path("data.py").write_text("import numpy as np\ntest = dict(np.load('test.npz'))\n")
    return "certify m.pt --compare model.py:make "


GROUPS = [f"d{at // 3}" for at in range(60)]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--data train.npz --m 100", "--m has no effect"),
        ("--data train.npz --train-error 0", "--train-error has no effect"),
        ("--data train.npz --test test.npz --by norms", "held-out is not among"),
        ("--test test.csv --groups doc", "no column 'doc' of groups: it has x, y, document"),
        ("--data test.npz --groups document", "--groups has no effect without --test"),
    ],
)
def test_words_without_an_effect_are_refused(folder: str, words: str, says: str) -> None:
    done = CliRunner().invoke(main, (folder + words).split())
    assert done.exit_code == 2
    assert says in done.output


@pytest.mark.parametrize("test", ["test.csv", "test.npz", "data.py:test"])
def test_groups_of_test_examples_are_a_column(trained: Any, folder: str, test: str) -> None:
    by_hand = boundcalc.certify(trained, test=sample(60, 3), groups=GROUPS).scores["error"]
    assert by_hand.n == 20
    done = CliRunner().invoke(main, (folder + f"--test {test} --groups document --certificates out").split())
    assert done.exit_code == 0, done.output
    assert json.loads(Path("out/error.json").read_text())["facts"] == by_hand.to_json()["facts"]


def test_p2l_trains_modules_of_its_own() -> None:
    """Also of a module that answers every row, with a loss beside."""
    x = np.random.default_rng(1).integers(0, 2, (60, 4))
    found = boundcalc.certify(made("nanoGPT"), (x, x[:, 0]), make=NanoGPT, methods=["p2l"])
    certificate = found.certificates["p2l"]
    assert certificate.method == "p2l"
    assert found["p2l"].risk == certificate.risk < 0.5
    assert found["p2l"].certifies == "trained on the prefix and the picks"
    assert {line.method for line in found.lines if line.refusal is None} == {"p2l"}
    with pytest.raises(InvalidSetting, match="make="):
        boundcalc.certify(made("nanoGPT"), (x, x[:, 0]), methods=["p2l"])


@pytest.mark.filterwarnings("ignore")
def test_the_library_runs_beside_its_folders_unless_told_not_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and `verify` keep whether it did; what kept it from running is said."""
    from tests.checkpoints.zoo import ZOO

    monkeypatch.chdir(tmp_path)
    ZOO["bert"].make().save_pretrained("bert")
    config = json.loads(Path("bert/config.json").read_text())

    def run(line: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, line.split())
        assert done.exit_code == code, done.output
        return " ".join(done.output.split())

    bound = "certify {} --m 1000000000 --gamma 0.25 --no-solve --bound closed --certificates out --force"
    there = "ompared with a forward pass of BertForSequenceClassification of transformers: 4 inputs of 12 rows"
    for model in ("bert", "bert/model.safetensors"):
        assert there in run(bound.format(model))
        assert there in " ".join(run("verify out/norms-closed-gap.json").split())
    kept = json.loads(Path("out/norms-closed-gap.json").read_text())["forward_check"]
    assert kept["module"] == "BertForSequenceClassification of transformers"
    assert kept["largest"] <= kept["allowed"] == 1e-9
    text = "not compared with a forward pass"
    run(bound.format("bert") + " --compare none")
    assert json.loads(Path("out/norms-closed-gap.json").read_text())["forward_check"] is None
    assert f"architecture as described, {text} (on record" in " ".join(run("verify out/norms-closed-gap.json").split())
    # a description that is not the library's: the library reads the file, --set says something else
    Path("bert/config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "layer_norm_eps"}))
    assert "eps 0.001" in run("norms bert --set layer_norm_eps=1e-3", 1)
    assert f"{text}: --compare none" in run("norms bert --set layer_norm_eps=1e-3 --compare none")
    # it cannot be loaded: nobody asked, so that is said; asked for, it is refused
    Path("bert/config.json").write_text(json.dumps(config | {"architectures": ["BertForNothing"]}))
    for words, code in (("", 0), (" --compare transformers", 1)):
        assert "has no attribute BertForNothing" in run("norms bert" + words, code)
    Path("bert/config.json").write_text(json.dumps(config))
    # a file that leaves sizes out means the library's own: 11 billion numbers, which are counted and not made
    from tests.checkpoints import handmade

    tensors, config = handmade.llama(np.random.default_rng(0))
    named = ("model_type", "architectures", "num_attention_heads", "num_key_value_heads", "tie_word_embeddings")
    handmade.save(tmp_path / "llama", tensors, {name: config[name] for name in named} | {"max_position_embeddings": 16})
    assert "makes a model of 11,512,8" in run("norms llama")
    assert "the files have 1,208" in run("norms llama --compare transformers", 1)
    monkeypatch.setattr("boundcalc.checkpoints.modules.MOST", 100)
    assert "more than the 100 that are run by default; --compare transformers runs them" in run("norms bert")
    assert there in run("norms bert --compare transformers")


def test_a_model_of_this_package_meets_its_examples_as_it_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train --certificates` leaves out the row that is read, which shows token 2 in every example."""
    monkeypatch.chdir(tmp_path)
    line = "train conjunction --T 8 --s 2 --m 60 -o m.safetensors --certify holdout --certificates out"
    done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 0, done.output
    x, y = (np.load("out/examples.npz")[name] for name in "xy")
    found = boundcalc.certify("m.safetensors", "out/examples.npz", methods=["norms"])
    assert found.errors == (0, 60)  # as training, which ended when all were right
    assert "token 2 is put before every sequence" in str(found)
    whole = np.insert(x.astype(int), 0, 2, axis=1)
    again = boundcalc.certify("m.safetensors", (whole, y), methods=["norms"])
    assert again.errors == (0, 60)
    assert again.setting == found.setting
    with pytest.raises(InvalidSetting, match="a sequence of 6 rows, but T is 9"):
        boundcalc.certify("m.safetensors", (x[:, :5], y), methods=["norms"])
