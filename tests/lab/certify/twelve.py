"""What twelve models get, each from what its user has to a verdict: `python -m tests.lab.certify.twelve` refreshes the
table.

Every model is trained for a few seconds as its user would, and then certified by at most five lines of Python or two
commands.
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from boundcalc.cli import main as command_line
from tests.checkpoints.layouts import NanoGPT, TimmViT, torch
from tests.checkpoints.live import hf
from tests.lab.certify import models

DOCS = Path(__file__).resolve().parents[3] / "docs" / "weights.md"
_TABLE = re.compile(r"<!-- table: python -m tests\.lab\.certify\.twelve -->\n(?P<table>(?:\|[^\n]*\n)+)")
ONE_CALL = "import boundcalc\nfound = boundcalc.certify(model, train, test=test)\nprint(found)"
FITTED = "import boundcalc\nfound = boundcalc.certify(model.fit(*train), test=test)\nprint(found)"
BEHIND = """import boundcalc
encode = lambda x: model(torch.as_tensor(x)).last_hidden_state.mean(1).detach().numpy()
head = LogisticRegression().fit(encode(train[0]), train[1])
found = boundcalc.certify(lambda x: head.predict(encode(x)), test=test)
print(found)"""
"""A sentence encoder answers with rows: its user puts a classifier behind it."""


@dataclass(frozen=True)
class Case:
    """A model as its user has it.

    Attributes:
        make: the module or estimator.
        data: n examples and their labels.
        lines: Python that its user writes, with `model`, `train` and `test` at hand; or commands, which begin with
            boundcalc.
        lay: what its user has in the folder.
        steps: of training.
    """

    make: Callable[[], Any]
    data: Callable[[int], tuple[Any, Any]]
    lines: str = ONE_CALL
    lay: Callable[[Path, Any, Any, Any], None] | None = None
    steps: int = 80


def last_token(n: int) -> tuple[Any, Any]:
    """Which token stands last: what a language model that copies answers."""
    x = np.random.default_rng(n).integers(0, models.VOCABULARY, (n, models.ROWS))
    return x, x[:, -1]


def many_large(n: int) -> tuple[Any, Any]:
    """Whether most tokens are large."""
    x = np.random.default_rng(n).integers(1, models.VOCABULARY, (n, models.ROWS))
    return x, ((x > models.VOCABULARY // 2).mean(1) > 0.5).astype(int)


def digits(n: int) -> tuple[Any, Any]:
    """The first or the last n of scikit-learn's images of digits, with a channel, in [-1, 1]."""
    from sklearn.datasets import load_digits

    dataset: Any = load_digits()
    part = slice(n) if n > 500 else slice(-n, None)
    return (dataset.images[part, None] / 8 - 1).astype(np.float32), dataset.target[part]


def texts(n: int) -> tuple[Any, Any]:
    """Reviews of five words, and their label."""
    words = np.random.default_rng(n).choice(["good", "fine", "bad", "dull"], (n, 5))
    return [" ".join(row) for row in words], [
        "pos" if np.isin(row, ["good", "fine"]).sum() > 2 else "neg" for row in words
    ]


def pipeline() -> Any:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(CountVectorizer(), LogisticRegression())


_SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
_BERT = _SMALL | {"vocab_size": models.VOCABULARY, "max_position_embeddings": 12, "num_labels": 2}


def _table(path: Path, header: str, rows: Any) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])


def saved(folder: Path, model: Any, train: Any, test: Any) -> None:
    """A folder of the transformers library, and examples in two tables."""
    model.save_pretrained(folder / "model")
    for name, (x, y) in (("train", train), ("test", test)):
        _table(
            folder / f"{name}.csv", "input_ids,label", [(" ".join(map(str, a)), b) for a, b in zip(x, y, strict=True)]
        )


def of_sentences(folder: Path, model: Any, train: Any, test: Any) -> None:
    """A folder as the library of sentence encoders lays it out."""
    model.bert.save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"embedding_dimension": 16, "pooling_mode": "mean"}))
    kinds = [{"idx": 0, "type": "m.Transformer", "path": ""}, {"idx": 1, "type": "m.Pooling", "path": "1_Pooling"}]
    (folder / "modules.json").write_text(json.dumps(kinds))


def answered(folder: Path, model: Any, train: Any, test: Any) -> None:
    """What a classifier answered, without the classifier."""
    model.fit(*train)
    _table(folder / "predictions.csv", "answer,label", zip(model.predict(test[0]), test[1], strict=True))


CASES: dict[str, Case] = {
    "GPT of a lecture: heads in a ModuleList": Case(models.LectureGPT, last_token),
    "GPT with its mask in a buffer, own LayerNorm": Case(models.BookGPT, last_token),
    "GPT with fused queries, keys and values, tied": Case(NanoGPT, last_token),
    "GPT with rotary positions and gated MLPs": Case(models.RotaryGPT, last_token),
    "ViT with patches by a convolution": Case(lambda: TimmViT(side=2), digits, steps=150),
    "ViT with patches by nn.Linear": Case(models.WebViT, digits, steps=150),
    "LSTM": Case(models.Recurrent, many_large),
    "encoder with an MLP head": Case(models.MlpHead, many_large),
    "scikit-learn pipeline": Case(pipeline, texts, FITTED),
    "Hugging Face folder": Case(
        lambda: hf.BertForSequenceClassification(hf.BertConfig(**_BERT)),
        many_large,
        "boundcalc certify model --data train.csv --test test.csv",
        saved,
    ),
    "sentence-transformers folder": Case(
        lambda: hf.BertForSequenceClassification(hf.BertConfig(**_BERT)), many_large, BEHIND, of_sentences
    ),
    "CSV of predictions": Case(pipeline, texts, "boundcalc certify predictions.csv", answered),
}


def trained(case: Case, data: tuple[Any, Any], steps: int) -> Any:
    """The module after some steps of Adam; an estimator as it is."""
    torch.manual_seed(0)
    model = case.make()
    if not isinstance(model, torch.nn.Module):
        return model
    x, y = (torch.as_tensor(array) for array in data)
    rule = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(steps):
        some = torch.randint(0, len(y), (128,))
        out = model(x[some])
        out = getattr(out, "logits", out[0] if isinstance(out, tuple) else out)
        loss = torch.nn.functional.cross_entropy(out[:, -1] if out.ndim == 3 else out, y[some])
        rule.zero_grad()
        loss.backward()
        rule.step()
    return model.eval()


@dataclass(frozen=True)
class Got:
    """The verdict, places that the forward check compared, methods that gave a number, why norms did not, and
    seconds."""

    verdict: str
    places: int | None
    has: tuple[str, ...]
    reason: str
    seconds: float


def run(name: str, folder: Path, *, quick: bool = False) -> Got:
    """From the folder to the verdict; `quick`: hardly trained, and on few examples."""
    case = CASES[name]
    train, test = (case.data(520), case.data(60)) if quick else (case.data(600), case.data(300))
    model = trained(case, train, 5 if quick else case.steps)
    train = (train[0][:60], train[1][:60]) if quick else train
    if case.lay is not None:
        case.lay(folder, model, train, test)
    started = time.process_time()
    if case.lines.startswith("boundcalc"):
        words = [str(folder / word) if (folder / word).exists() else word for word in case.lines.split()[1:]]
        result = CliRunner().invoke(command_line, [*words, "--format", "json"])
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
    else:
        from sklearn.linear_model import LogisticRegression

        model = model if case.lay is None else hf.AutoModel.from_pretrained(folder)
        room = {"model": model, "train": train, "test": test, "torch": torch, "LogisticRegression": LogisticRegression}
        with redirect_stdout(StringIO()):
            exec(case.lines, room)
        document = room["found"].to_json()
    seconds, lines = time.process_time() - started, document["lines"]
    places = (document["forward_check"] or {}).get("places")
    has = tuple(line["method"].partition(":")[0] for line in lines if line["refusal"] is None)
    why = next((line["refusal"] for line in lines if line["method"].startswith("norms") and line["refusal"]), "")
    return Got(document["verdict"], places and len(places), has, why, seconds)


def row(name: str, got: Got) -> str:
    """A row of the table."""
    described = f"{got.places} places" if got.places else got.reason.partition(":")[0]
    return f"| {name} | {len(CASES[name].lines.splitlines())} | {', '.join(got.has)} | {described} |"


HEAD = ["| model | lines | numbers by | described, compared at |", "| --- | ---: | --- | --- |"]


def shown() -> list[str]:
    """The table in the docs, row by row."""
    match = _TABLE.search(DOCS.read_text(encoding="utf-8"))
    assert match is not None
    return match["table"].splitlines()


def main() -> None:
    """Refresh the table, and print what every user reads."""
    torch.set_num_threads(1)
    lines = list(HEAD)
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            got = run(name, Path(folder))
        lines.append(row(name, got))
        print(f"{lines[-1]} {got.seconds:.1f} s\n  {got.verdict} {got.reason}")  # noqa: T201 - a script
    text = DOCS.read_text(encoding="utf-8")
    start = "<!-- table: python -m tests.lab.certify.twelve -->\n"
    DOCS.write_text(_TABLE.sub(lambda _: start + "\n".join(lines) + "\n", text), encoding="utf-8")


if __name__ == "__main__":
    main()
