"""Anyone's model: as their users write them, each from what is at hand to a verdict; nothing ends in a traceback."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import boundcalc
from boundcalc import verify_predictor
from boundcalc.base.errors import BoundcalcError, CertificateError, InvalidSetting
from boundcalc.checkpoints.data import sequences
from boundcalc.lab._scores import overlapping, read_predictions
from boundcalc.predictors.certificate import PredictorCertificate
from boundcalc.predictors.scores import Score
from tests.checkpoints.layouts import MinGPT, NanoGPT, torch
from tests.lab.certify import models

RNG = np.random.default_rng(0)


def tokens(n: int) -> tuple[Any, Any]:
    return RNG.integers(0, models.VOCABULARY, (n, models.ROWS)), RNG.integers(0, 2, n)


@pytest.mark.parametrize(
    "make", [lambda: models.LectureGPT("lower"), MinGPT, models.TutorialTransformer], ids=["lecture", "minGPT", "torch"]
)
def test_no_buffer_counts_as_a_weight(make: Callable[[], Any]) -> None:
    """Masks and positions in buffers, under any name; twelve.py certifies the other layouts."""
    torch.manual_seed(0)
    model = make().eval()
    found = boundcalc.certify(model, tokens(60), methods=["norms"])
    assert found.parity is not None
    assert found.parity.worst <= 1e-9
    assert found.parity.outputs is not None
    assert found.audit is not None
    used = {line.tensor for line in found.audit.account.lines if line.used}
    assert not used & {name for name, _ in model.named_buffers()}


FEATURES = {
    "logistic regression": lambda: torch.nn.Linear(4, 2),
    "a score whose sign answers": lambda: torch.nn.Linear(4, 1),
    "an MLP": lambda: torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)),
}


@pytest.mark.parametrize(
    ("name", "labels"),
    [*((name, (0, 1)) for name in FEATURES), *((list(FEATURES)[1], y) for y in ((1, 0), (-1, 1), "ny"))],
)
def test_a_table_of_features_from_an_empty_folder_to_a_verdict(
    name: str, labels: Sequence[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted by hand; `verify` establishes it again, and refuses it on other examples and with other facts."""
    from boundcalc.cli import main
    from boundcalc.lab._given import GivenNetwork

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    model = FEATURES[name]()
    with torch.no_grad():  # the first column decides, but for one in ten
        for value in model.parameters():
            value.mul_(0.01)
        (model if isinstance(model, torch.nn.Linear) else model[2]).weight[-1, 0] = 4.0
        (model if isinstance(model, torch.nn.Linear) else model[0]).weight[0, 0] = 1.0
    x = RNG.standard_normal((400, 4)).round(2)
    y = (x[:, 0] > 0) ^ (RNG.random(400) < 0.1)
    for file, part in (("train", slice(300)), ("test", slice(300, 400))):
        rows = [",".join([*map(str, row), str(labels[int(b)])]) for row, b in zip(x[part], y[part], strict=True)]
        Path(f"{file}.csv").write_text("age,size,dose,rate,label\n" + "\n".join(rows) + "\n")
    torch.save(model.state_dict(), "m.pt")
    Path("model.py").write_text(f"from tests.lab.certify.test_anyone import FEATURES\nmake = FEATURES[{name!r}]\n")
    line = "certify m.pt --compare model.py:make --data train.csv --test test.csv --certificates out --format json"
    done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 0, done.output
    lines = json.loads(done.stdout)["lines"]
    with torch.no_grad():
        out = model.double()(torch.tensor(x[300:])).numpy()
    said = out[:, 0] > 0 if out.shape[1] == 1 else out[:, 1] > out[:, 0]
    target = np.array([labels[int(b)] for b in y[300:]])
    wrong = int((said != (target == sorted(labels)[1])).sum())
    kept = PredictorCertificate.load("out/held-out.json")
    assert kept.facts == {"errors": wrong, "n": 100}
    assert {line["method"] for line in lines if line["refusal"] is None} == {"held-out", "occam"}
    assert "no attention" in next(line["refusal"] for line in lines if line["method"] == "norms: best")
    assert CliRunner().invoke(main, ["verify", "out/held-out.json"]).exit_code == 0
    found = boundcalc.certify(model.float(), "train.csv", test="test.csv")
    assert found.certificates["held-out"].facts == kept.facts
    assert found.outputs is not None
    ways: dict[str, Any] = {"held-out": ("test.csv", found.outputs)}
    ways["occam"] = "train.csv", GivenNetwork.of(found.outputs)
    for method, (data, network) in ways.items():
        certificate = PredictorCertificate.load(f"out/{method}.json")
        examples = sequences(data)
        assert verify_predictor(certificate, examples, lambda recipe, by=network: by).established
        with pytest.raises(CertificateError, match="sha256"):
            verify_predictor(certificate, examples.take(range(90)), lambda recipe, by=network: by)
        fewer = replace(certificate, errors=certificate.errors - 1)
        with pytest.raises(CertificateError):
            verify_predictor(replace(fewer, risk=fewer.value), examples, lambda recipe, by=network: by)


def test_tables_of_features_have_their_columns_in_one_order(tmp_path: Path) -> None:
    for name, columns in (("train", "a,b"), ("test", "a,b"), ("other", "b,a")):
        rows = "".join(f"{place},{-place},{place % 2}\n" for place in range(20 + len(name)))
        predictions(tmp_path / f"{name}.csv", f"{columns},y\n{rows}")
    train, test, other = (tmp_path / f"{name}.csv" for name in ("train", "test", "other"))
    found = boundcalc.certify(torch.nn.Linear(2, 2), train, test=test)
    assert "the model reads the columns a, b, in this order" in found.details
    with pytest.raises(InvalidSetting, match="another order"):
        boundcalc.certify(torch.nn.Linear(2, 2), train, test=other)


def test_a_probability_is_no_score() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid()).eval()
    x, y = RNG.standard_normal((40, 4)), np.arange(40) % 2
    with pytest.raises(BoundcalcError, match="a module that answers with its logit"):
        boundcalc.certify(model, test=(x, y))
    assert boundcalc.certify(model[0], test=(x, y)).scores["error"].n == 40
    with pytest.raises(InvalidSetting, match="which is no label"):
        boundcalc.certify(lambda rows: 1 / (1 + np.exp(-rows[:, 0])), test=(x, y))


def test_a_network_on_bits_gets_its_rule(tmp_path: Path) -> None:
    from boundcalc.cli import main

    place, data = str(tmp_path / "rule.safetensors"), str(tmp_path / "examples.npz")
    words = ["train", "conjunction", "--T", "24", "--m", "200", "--certify", "rule"]
    made = CliRunner().invoke(main, [*words, "--certificates", str(tmp_path)])
    assert made.exit_code == 0
    found = boundcalc.certify(place, data)
    assert found["rule"].risk == PredictorCertificate.load(tmp_path / "rule.json").risk
    assert found.verdict.startswith(f"Error of {place} at most")
    found.save(tmp_path / "certificates")
    checked = CliRunner().invoke(main, ["verify", str(tmp_path / "certificates" / "rule.json"), "--model", place])
    assert "the network computes" in checked.output
    wrong = np.load(data)
    labels = np.random.default_rng(0).permutation(wrong["y"])  # labels that no rule of the network explains
    other = boundcalc.certify(place, (wrong["x"], labels), methods=["rule"])
    assert other["rule"].risk is None or other["rule"].risk > 0.3
    assert [line.refusal for line in other.lines if line.method == "norms"] == ["not requested (methods=, --by)"]


def test_rows_that_a_linear_map_reads_may_be_fewer_than_t() -> None:
    class Rows(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside, self.out = torch.nn.Linear(4, 16), torch.nn.Linear(16, 2)
            self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.out(self.layer(self.inside(x))[:, 0])

    x, y = RNG.uniform(-0.25, 0.25, (60, 6, 4)), RNG.integers(0, 2, 60)
    found = boundcalc.certify(Rows().eval(), (x, y), test=(x[::-1] / 2, y))
    assert found["norms: best"].refusal is None
    assert "a patch of the data has norm" in str(boundcalc.certify(Rows().eval(), (9 * x, y))["norms: best"].refusal)


def test_a_downloaded_model_needs_no_training_data() -> None:
    """And methods that one reason keeps out share a row."""
    found = boundcalc.certify(NanoGPT().eval(), test=tokens(40))
    assert [row[0] for row in found.table[1:]] == ["held-out", "norms, occam, rule, p2l, pac-bayes"]
    assert {line.refusal for line in found.lines} == {None, "it needs the training data (data=, --data)"}
    assert found.errors is None


def test_a_pipeline_and_a_function() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = random.Random(0)
    texts = [" ".join(rng.choices(["good", "bad", "dull", "fine"], k=5)) for _ in range(120)]
    labels = ["pos" if text.count("good") + text.count("fine") > 2 else "neg" for text in texts]
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts[:60], labels[:60])
    found = boundcalc.certify(
        pipeline, test=(texts[60:], labels[60:]), against=lambda batch: ["pos"] * len(batch), looks=2
    )
    wrong = int((pipeline.predict(texts[60:]) != np.array(labels[60:])).sum())
    assert found.scores["error"].facts == {"errors": wrong, "n": 60}
    assert found.scores["error"].looks == 2
    assert found.scores["difference"].interval[1] < 0
    with pytest.raises(InvalidSetting, match="no function of one example"):
        boundcalc.certify(lambda batch: ["pos" if len(batch) > 1 else "neg"] * len(batch), test=(texts, labels))
    for nothing in (3, None, type(pipeline)):
        with pytest.raises(InvalidSetting):
            boundcalc.certify(nothing, test=(texts, labels))


def test_scores_that_are_no_numbers_are_wrong() -> None:
    scores = np.array([[0.1, 0.9], [np.nan, 0.9], [0.9, np.nan], [0.5, 0.5], [np.inf, 0.0]])
    found = boundcalc.certify(lambda rows: scores[np.asarray(rows).reshape(-1)], test=(np.arange(5), [1, 1, 0, 0, 0]))
    assert found.scores["error"].facts["errors"] == 4


def predictions(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8-sig")
    return path


def test_files_of_predictions(tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.csv", "answer,label\ncat,cat\ndog,cat\n1.0,1\n,cat\nnan,nan\n")
    assert read_predictions(path).losses.tolist() == [0, 1, 0, 1, 1]
    path = predictions(tmp_path / "s.csv", 'scores,label\n"[0.1, 0.9]",1\n0.5 0.5,0\nx 0.1,0\n')
    assert read_predictions(path).losses.tolist() == [0, 1, 1]
    path = predictions(tmp_path / "l.csv", "loss,doc\n0.25,a\n0.75,a\n0,b\n")
    assert boundcalc.certify(path, groups="doc").scores["error"].facts["losses"] == [0.5, 0]
    for text, message in (
        ("answer\ncat\n", "no column label"),
        ("label\ncat\n", "no column answer"),
        ("answer,label\ncat,\n", "line 2 has no label"),
        ("scores,label\n1 2,5\n", "none of the 2 scores"),
        ("loss\n2\n", "between 0 and 1"),
        ("loss\nx\n", "line 2 has loss 'x'"),
        ("answer,label\n", "a line for each example"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            read_predictions(predictions(tmp_path / "w.csv", text))
    with pytest.raises(InvalidSetting, match="labels differ"):
        boundcalc.certify(
            predictions(tmp_path / "a.csv", "answer,label\nx,x\ny,y\n"),
            against=predictions(tmp_path / "b.csv", "answer,label\ny,y\nx,x\n"),
        )


def test_weights_of_predictions(tmp_path: Path) -> None:
    rows = "".join(f"a,{'a' if i % 10 else 'b'},{0.5 if i % 10 else 2},{'a' if i % 5 else 'b'}\n" for i in range(200))
    path = predictions(tmp_path / "w.csv", "answer,label,weight,other\n" + rows)
    found = boundcalc.certify(path, against="other", largest_weight=2)
    assert found.scores["error"].value == pytest.approx(20 * 2 / (20 * 2 + 180 * 0.5))
    assert found["held-out"].quantity == "Weighted error"
    assert "S4: weighted mean" in found["held-out"].based_on
    assert found.scores["difference"].kind == "graded difference"
    for change, message in (
        ({}, "has a column 'weight'"),
        ({"largest_weight": 1.9}, "line 2 has weight '2'"),
        ({"largest_weight": 2, "groups": "other"}, "no largest weight of a whole group"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            boundcalc.certify(path, **change)  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="no column of weights"):
        boundcalc.certify(predictions(tmp_path / "p.csv", "answer,label\na,a\n"), largest_weight=1)


def test_what_is_saved_is_verified(tmp_path: Path) -> None:
    rows = "".join(f"{'cat' if i % 9 else 'dog'},cat,{'cat' if i % 3 else 'dog'},d{i // 2}\n" for i in range(90))
    path = predictions(tmp_path / "p.csv", "answer,label,other,doc\n" + rows)
    found = boundcalc.certify(path, against="other")
    assert found["against other"].certifies == "the first is better"
    for file in found.save(tmp_path / "out"):
        score = Score.from_json(json.loads(file.read_text()))
        assert score.claim
    assert {file.stem for file in (tmp_path / "out").iterdir()} == {"error", "difference"}


def test_dependent_examples_are_said(tmp_path: Path) -> None:
    text = RNG.integers(0, 50, 600)
    windows = [text[at : at + 32] for at in range(0, 500, 8)]
    assert "begin inside of another" in overlapping(windows)[0]
    assert overlapping([text[at : at + 32] for at in range(0, 500, 32)]) == []
    assert "repeat an earlier one" in overlapping([windows[0], windows[0]])[0]
    assert overlapping([RNG.integers(0, 2, 64) for _ in range(200)]) == []
    path = predictions(tmp_path / "p.csv", "text,answer,label\nx,a,a\nx,a,a\ny,b,b\n")
    assert "1 of 3 examples repeat an earlier text" in str(boundcalc.certify(path))


def test_a_model_that_ends_in_rows_is_refused(tmp_path: Path) -> None:
    """A sentence encoder's numbers are no scores: counting labels against them would be a certificate of nothing."""
    from tests.lab.certify.twelve import CASES, of_sentences

    case = CASES["sentence-transformers folder"]
    of_sentences(tmp_path, case.make(), None, None)
    with pytest.raises(InvalidSetting, match="has no readout, so it answers with rows and no labels"):
        boundcalc.certify(tmp_path, test=tokens(40))


def test_a_column_of_text_says_how_to_tokenise(tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.csv", "text,label\nvery good film,pos\nbad film,neg\n")
    with pytest.raises(InvalidSetting, match=r"p.csv, line 2, column 'text': 'very good film' .* tokenizer\(text\)"):
        boundcalc.certify(NanoGPT().eval(), test=path)
    words = predictions(tmp_path / "w.csv", "input_ids,label\n3 1 4,pos\n1 5 9,neg\n2 6 5,neg\n")
    assert boundcalc.certify(models.Recurrent().eval(), test=words)["held-out"].refusal is None
