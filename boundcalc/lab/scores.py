"""Answers to labelled examples, right or wrong, and what they prove: files of predictions, or any function.

Needs neither torch nor a description of the model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.data import read_columns
from boundcalc.predictors.data import digest_of_arrays
from boundcalc.predictors.scores import Score

LABELS = ("label", "labels", "y", "target", "gold", "truth", "class")
ANSWERS = ("answer", "prediction", "predicted", "pred", "output")
WEIGHTS = ("weight", "weights", "importance")
GRADES = ("loss", "error", "wrong", "correct", "score")
_INPUTS = ("x", "text", "input", "input_ids", "tokens", "question", "prompt", "sentence", "doc_id", "id")
_AGAIN = 64


@dataclass(frozen=True, eq=False)
class Judged:
    """The loss of one predictor on every example: 0 of a right answer, 1 of a wrong one, or a grade between.

    Attributes:
        name: of the predictor.
        losses: one an example.
        labels: the examples' answers as text, which say whether two predictors met the same examples.
        groups: of examples that are not independent, one name each; None where each is by itself.
        table: columns of a file, for groups and for another predictor's answers.
        notes: what readers must know.
        weights: of the examples, where they have any; the last number is the largest that an example can have.
    """

    name: str
    losses: NDArray[np.float64]
    labels: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    table: Mapping[str, Sequence[str]] | None = None
    notes: tuple[str, ...] = ()
    weights: tuple[tuple[float, ...], float] | None = None

    def __post_init__(self) -> None:
        if not len(self.losses):
            raise InvalidSetting(f"{self.name} has no examples")
        if not ((self.losses >= 0) & (self.losses <= 1)).all():
            raise InvalidSetting(
                f"{self.name}: losses lie between 0 and 1; divide them by the largest that is possible"
            )

    @property
    def evidence(self) -> dict[str, Any]:
        """Which answers these are, as certificates say it."""
        arrays: dict[str, Any] = {"losses": self.losses, "labels": np.array(self.labels, dtype=np.str_)}
        digest = digest_of_arrays(arrays if self.weights is None else arrays | {"weights": np.array(self.weights[0])})
        return {"name": self.name, "sha256": digest, "examples": len(self.losses)}

    def by_group(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        """One vote for each group: the mean of its members."""
        if self.groups is None:
            return losses
        _, which = np.unique(np.array(self.groups), return_inverse=True)
        return np.bincount(which, losses) / np.bincount(which)

    def weighted(self, losses: NDArray[np.float64]) -> dict[str, Any]:
        """The facts of a weighted mean (S4)."""
        assert self.weights is not None  # noqa: S101 - asked where there are weights
        if self.groups is not None:
            raise InvalidSetting(
                "groups have one vote each, and examples here have weights: no largest weight of a whole group is "
                "known, so that nothing is proved of both together; leave out one of them"
            )
        return {"losses": losses.tolist(), "weights": list(self.weights[0]), "largest": self.weights[1]}


def score(judged: Judged, delta: float = 0.05, looks: int = 1) -> Score:
    """The error of one predictor (S1), its mean loss (S3) where losses are graded or groups have one vote, or S4."""
    votes = judged.by_group(judged.losses)
    evidence = {"first": judged.evidence, "groups": None if judged.groups is None else len(votes)}
    if judged.weights is not None:
        return Score("weighted loss", judged.weighted(judged.losses), delta, looks, evidence)
    if np.isin(votes, (0, 1)).all():
        return Score("error", {"errors": int(votes.sum()), "n": len(votes)}, delta, looks, evidence)
    return Score("loss", {"losses": votes.tolist()}, delta, looks, evidence)


def difference(first: Judged, second: Judged, delta: float = 0.05, looks: int = 1) -> Score:
    """How much the first errs more often than the second on the same examples (S2; S3 of grades and groups; S4)."""
    if first.labels != second.labels:
        raise InvalidSetting(
            f"{first.name} and {second.name} were not given the same examples in the same order: their labels differ"
        )
    if second.weights not in (None, first.weights):
        raise InvalidSetting(f"{second.name} gives the examples other weights than {first.name}")
    votes = first.by_group(first.losses - second.losses)
    evidence = {"first": first.evidence, "second": second.evidence}
    if first.weights is not None:
        halves = np.clip((1 + votes) / 2, 0, 1)
        return Score("weighted difference", first.weighted(halves), delta, looks, evidence)
    if np.isin(votes, (-1, 0, 1)).all():
        facts = {"first": int((votes == 1).sum()), "second": int((votes == -1).sum()), "n": len(votes)}
        return Score("difference", facts, delta, looks, evidence)
    halves = np.clip((1 + votes) / 2, 0, 1).tolist()
    return Score("graded difference", {"losses": halves}, delta, looks, evidence)


def read_predictions(
    path: str | Path, groups: str | None = None, answers: str | None = None, largest: float | None = None
) -> Judged:
    """The answers in a CSV or Parquet file: columns answer and label, scores and label, or loss (error, correct).

    Args:
        path: of the file.
        groups: the column that names what each example belongs to.
        answers: the column to judge, where not the usual one.
        largest: the largest weight that an example can have, where there is a column of weights.
    """
    columns = read_columns(Path(path))
    table = {name: ["" if cell is None else str(cell) for cell in cells] for name, cells in columns.items()}
    label = next((name for name in LABELS if name in table), None)
    named = answers or next((name for name in (*ANSWERS, "scores", *GRADES) if name in table), None)
    parts = sorted((name for name in table if name.startswith("score_")), key=lambda name: (len(name), name))
    if named not in table and not (named is None and parts):
        wanted = "answer, scores or loss" if answers is None else repr(answers)
        raise InvalidSetting(f"{path} has no column {wanted}: it has {', '.join(table)}")
    if label is None and named not in GRADES:
        raise InvalidSetting(f"{path} has no column {', '.join(LABELS[:4])}: it has {', '.join(table)}")
    labels = tuple(map(_plain, table[label])) if label else tuple(map(str, range(len(next(iter(table.values()))))))
    if label and (blank := next((row for row, text in enumerate(labels) if not text), None)) is not None:
        raise InvalidSetting(f"{path}: line {blank + 2} has no label: leave such examples out")
    if named in GRADES:
        losses = _graded(path, named, table[named])
    elif named is None or named == "scores":
        rows = [table[part] for part in parts] if named is None else None
        scores = list(zip(*rows, strict=True)) if rows else [_numbers(cell) for cell in table["scores"]]
        losses = np.array([_loss_of_scores(path, at, row, labels[at]) for at, row in enumerate(scores)], np.float64)
    else:
        losses = np.array([not _equal(a, b) for a, b in zip(table[named], labels, strict=True)], np.float64)
    judged = Judged(Path(path).name, losses, labels, table=table, weights=_weights(path, table, largest))
    notes = [] if groups is not None else _repeated(table)
    if groups is None:
        return replace(judged, notes=tuple(notes))
    if groups not in table:
        raise InvalidSetting(f"{path} has no column {groups!r} of groups: it has {', '.join(table)}")
    return replace(judged, groups=tuple(map(_plain, table[groups])))


def judge(predictor: Any, x: Any, y: Any, name: str = "") -> Judged:
    """What any function answers: `predict` of an estimator, or a function of a batch; labels, or scores of classes.

    Some examples are answered again, one by one: a certificate is about a function of one example.
    """
    ask: Callable[[Any], Any] = predictor.predict if hasattr(predictor, "predict") else predictor
    if not callable(ask):
        raise InvalidSetting(
            f"a {type(predictor).__name__} answers nothing: give a function, an estimator or a torch module"
        )
    labels, n = np.asarray(y).reshape(-1), len(y)
    if len(x) != n or not n:
        raise InvalidSetting(f"{len(x)} examples and {n} labels: need as many, and at least one")
    name = name or getattr(predictor, "__name__", type(predictor).__name__)
    losses = _losses(name, ask(x), labels)
    some = np.random.default_rng(0).permutation(n)[:_AGAIN]
    again = np.array([_losses(name, ask(_take(x, [int(i)])), labels[[i]])[0] for i in some])
    if (again != losses[some]).any():
        raise InvalidSetting(
            f"{name} answers {int((again != losses[some]).sum())} of {len(some)} examples otherwise when they are "
            "asked one by one: it is no function of one example, so that no certificate is about it"
        )
    return Judged(name, losses, tuple(str(label) for label in labels))


def _take(x: Any, places: list[int]) -> Any:
    if hasattr(x, "iloc"):
        return x.iloc[places]
    return [x[i] for i in places] if isinstance(x, list | tuple) else x[places]


def _losses(name: str, answers: Any, labels: NDArray[Any]) -> NDArray[np.float64]:
    array = np.asarray(answers.detach().cpu().numpy() if hasattr(answers, "detach") else answers)
    if len(array) != len(labels) or array.ndim > 2:
        raise InvalidSetting(f"{name} answers with an array of shape {array.shape} to {len(labels)} examples")
    if array.ndim == 2 and array.shape[1] > 1:
        return np.array(
            [
                _loss_of_scores(name, at, row, str(label))
                for at, (row, label) in enumerate(zip(array, labels, strict=True))
            ]
        )
    if array.dtype.kind == "f" and not (array == np.round(array)).any() and np.isfinite(array).any():
        raise InvalidSetting(
            f"{name} answers with {array.flat[0]:.4g}, which is no label: give labels or scores of classes"
        )
    return np.array([not _equal(str(a), str(b)) for a, b in zip(array.reshape(-1), labels, strict=True)], np.float64)


def _loss_of_scores(where: object, row: int, cells: Sequence[Any], label: str) -> float:
    """0 where the label's score is above all others; ties, and scores that are no numbers, are wrong."""
    number = _number(label)
    if number is None or number != int(number) or not 0 <= number < len(cells):
        raise InvalidSetting(
            f"{where}: label {label!r} of example {row + 1} is none of the {len(cells)} scores' numbers 0, 1, ..."
        )
    scores = [_number(str(cell)) for cell in cells]
    own = scores[int(number)]
    others = [score for place, score in enumerate(scores) if place != int(number)]
    return float(not (own is not None and all(other is not None and own > other for other in others)))


def _graded(where: object, kind: str, cells: Sequence[str]) -> NDArray[np.float64]:
    words = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
    values = [words.get(cell.lower(), _number(cell)) for cell in cells]
    missing = next((row for row, value in enumerate(values) if value is None), None)
    if missing is not None:
        raise InvalidSetting(
            f"{where}: line {missing + 2} has {kind} {cells[missing]!r}, which is no number between 0 and 1"
        )
    losses = np.array(values, np.float64)
    return 1 - losses if kind in ("correct", "score") else losses


def _weights(
    path: object, table: Mapping[str, Sequence[str]], largest: float | None
) -> tuple[tuple[float, ...], float] | None:
    """The column of weights and the largest that an example can have."""
    column = next((name for name in WEIGHTS if name in table), None)
    if column is None:
        return None
    if largest is None:
        raise InvalidSetting(
            f"{path} has a column {column!r}: say the largest weight that an example can have, fixed before the "
            "examples were drawn (--largest-weight, largest_weight=); the largest of those that were drawn bounds "
            "nothing. Or leave the column out"
        )
    if not 0 < largest < math.inf:
        raise InvalidSetting(f"the largest weight is a number above 0, got {largest:g}")
    weights: list[float] = []
    for line, cell in enumerate(table[column], 2):
        weight = _number(cell)
        if weight is None or not 0 <= weight <= largest:
            raise InvalidSetting(f"{path}: line {line} has {column} {cell!r}, which is not between 0 and {largest:g}")
        weights.append(weight)
    if not any(weights):
        raise InvalidSetting(f"{path}: every example has weight 0")
    return tuple(weights), float(largest)


def _repeated(table: Mapping[str, Sequence[str]]) -> list[str]:
    named = next((name for name in _INPUTS if name in table), None)
    if named is None:
        return []
    again = len(table[named]) - len(set(table[named]))
    if not again:
        return []
    return [
        f"{again} of {len(table[named])} examples repeat an earlier {named}: they are no independent draws; give each "
        f"one vote with --groups {named}"
    ]


def overlapping(x: Sequence[NDArray[Any]]) -> list[str]:
    """A word on test sequences that repeat each other, or are windows cut from one text that overlap."""
    keys = [sequence.tobytes() for sequence in x]
    again = len(keys) - len(set(keys))
    notes = (
        []
        if not again
        else [f"{again} of {len(x)} test sequences repeat an earlier one: they are no independent draws"]
    )
    tokens = [sequence for sequence in x if sequence.ndim == 1 and sequence.shape[0] >= 16]
    if len(tokens) < 2 or sum(map(len, tokens)) > 4 * 10**6:
        return notes
    half = max(8, min(map(len, tokens)) // 2)
    starts = {
        sequence[:half].tobytes(): at for at, sequence in enumerate(tokens) if len(np.unique(sequence[:half])) > 4
    }
    shared: set[int] = set()
    for at, sequence in enumerate(tokens):
        data, width = np.ascontiguousarray(sequence).tobytes(), sequence.itemsize
        for start in range(1, len(sequence) - half + 1):
            other = starts.get(data[start * width : (start + half) * width])
            if other is not None and other != at:
                shared.add(other)
    if len(shared) > len(tokens) // 50:
        notes.append(
            f"{len(shared)} of {len(x)} test sequences begin inside of another: windows of one text that overlap are "
            "no independent draws; cut windows that do not overlap, or give each text one vote (groups=)"
        )
    return notes


def _plain(cell: str) -> str:
    return cell.strip()


def _numbers(cell: str) -> Sequence[Any]:
    try:
        return json.loads(cell) if cell.startswith("[") else cell.replace(",", " ").replace(";", " ").split()
    except ValueError:
        return ()


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _equal(answer: str, label: str) -> bool:
    """Whether an answer is the label: the same text, or the same number (1 and 1.0)."""
    a, b = answer.strip(), label.strip()
    if not a or a.lower() == "nan":
        return False
    numbers = _number(a), _number(b)
    return a == b or (numbers[0] is not None and numbers[0] == numbers[1])
