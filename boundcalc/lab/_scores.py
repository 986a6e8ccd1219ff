"""Answers to labelled examples, right or wrong, and what they prove: files of predictions, or any function.

Needs neither torch nor a description of the model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.npz import digest_of_arrays
from boundcalc.checkpoints.data import read_columns
from boundcalc.lab.certification import Line, of_score
from boundcalc.predictors.scores import Score

PREDICTIONS = (".csv", ".parquet")
"""Endings of files of predictions."""
_LABELS = ("label", "labels", "y", "target", "gold", "truth", "class")
_ANSWERS = ("answer", "prediction", "predicted", "pred", "output")
_WEIGHTS = ("weight", "weights", "importance")
_GRADES = ("loss", "error", "wrong", "correct", "score")
_INPUTS = ("x", "text", "input", "input_ids", "tokens", "question", "prompt", "sentence", "doc_id", "id")
_WORDS = {"true": "1", "false": "0", "yes": "1", "no": "0"}
_AGAIN = 64
"""Examples that a function answers again."""
_Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judged:
    """The loss of one predictor on every example: 0 of a right answer, 1 of a wrong one, or a grade between.

    Attributes:
        name: of the predictor.
        losses: one an example.
        labels: the examples' answers as text, which say whether two predictors met the same examples.
        groups: of examples that are not independent, one name each; None where each is by itself.
        weights: "weights" of the examples and the "largest" that an example can have, where they have any.
        notes: what readers must know.
    """

    name: str
    losses: _Floats
    labels: Sequence[str]
    groups: Sequence[str] | None = None
    weights: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.losses)
        if self.groups is not None and (isinstance(self.groups, str) or len(self.groups) != n):
            raise InvalidSetting(f"groups names what each of the {n} test examples belongs to; got {self.groups!r:.80}")
        if self.groups is not None and self.weights is not None:
            raise InvalidSetting(
                "groups have one vote each, and examples here have weights: no largest weight of a whole group is "
                "known, so that nothing is proved of both together; leave out one of them"
            )

    @property
    def evidence(self) -> dict[str, Any]:
        """Which answers these are, as certificates say it."""
        arrays: dict[str, Any] = {"losses": self.losses, "labels": np.array(self.labels, dtype=np.str_)}
        arrays |= {} if self.weights is None else {"weights": np.array(self.weights["weights"])}
        return {"name": self.name, "sha256": digest_of_arrays(arrays), "examples": len(self.losses)}


# -- who answered


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
    columns = read_columns(Path(path)).items()
    table = {name: ["" if cell is None else str(cell).strip() for cell in cells] for name, cells in columns}

    def column(*names: str, needed: bool = True) -> str:
        present = next((name for name in names if name in table), "")
        if needed and not present:
            raise InvalidSetting(f"{path} has no column {' or '.join(names)}: it has {', '.join(table)}")
        return present

    answer = column(answers) if answers else column(*_ANSWERS, "scores", *_GRADES)
    label, weight = column(*_LABELS, needed=answer not in _GRADES), column(*_WEIGHTS, needed=False)
    cells = table[answer]
    labels = table[label] if label else [str(line) for line in range(len(cells))]
    if "" in labels:
        raise InvalidSetting(f"{path}: line {labels.index('') + 2} has no label: leave such examples out")
    if answer in _GRADES:
        grades = _numbers_of(path, answer, [_WORDS.get(cell.lower(), cell) for cell in cells])
        losses = 1 - grades if answer in ("correct", "score") else grades
    else:
        losses = _losses(
            path, [re.findall(r"[^\s,;[\]]+", cell) for cell in cells] if answer == "scores" else cells, labels
        )
    if bool(weight) != (largest is not None):
        raise InvalidSetting(
            f"{path} has {f'a column {weight!r}' if weight else 'no column of weights'}: leave out the largest "
            "weight, or give both. It is the largest that an example can have, fixed before the examples were drawn "
            "(--largest-weight, largest_weight=); the largest of those that were drawn bounds nothing"
        )
    weights = None
    if largest is not None:
        weights = {"weights": _numbers_of(path, weight, table[weight], largest).tolist(), "largest": float(largest)}
    members, key, notes = None if groups is None else table[column(groups)], column(*_INPUTS, needed=False), ()
    if members is None and key and (again := len(labels) - len(set(table[key]))):
        notes = (
            f"{again} of {len(labels)} examples repeat an earlier {key}: they are no independent draws; give each one "
            f"vote with --groups {key}",
        )
    return Judged(Path(path).name, losses, labels, members, weights, notes)


def judge(predictor: Any, x: Any, y: Any, name: str = "", groups: Sequence[str] | None = None) -> Judged:
    """What any function answers: `predict` of an estimator, or a function of a batch; labels, or scores of classes.

    Some examples are answered again, one by one: a certificate is about a function of one example.
    """
    ask: Callable[[Any], Any] = predictor.predict if hasattr(predictor, "predict") else predictor
    if not callable(ask):
        raise InvalidSetting(
            f"a {type(predictor).__name__} answers nothing: give a function, an estimator or a torch module"
        )
    labels, n = [str(label) for label in np.asarray(y).reshape(-1)], len(y)
    if len(x) != n or not n:
        raise InvalidSetting(f"{len(x)} examples and {n} labels: need as many, and at least one")
    name = name or getattr(predictor, "__name__", type(predictor).__name__)

    def losses_of(batch: Any, labels: Sequence[str]) -> _Floats:
        array = ask(batch)
        array = np.asarray(array.detach().cpu().numpy() if hasattr(array, "detach") else array)
        if len(array) != len(labels) or array.ndim > 2:
            raise InvalidSetting(f"{name} answers with an array of shape {array.shape} to {len(labels)} examples")
        if array.ndim == 2 and array.shape[1] > 1:
            return _losses(name, array, labels)
        if array.dtype.kind == "f" and not (array == np.round(array)).any() and np.isfinite(array).any():
            raise InvalidSetting(
                f"{name} answers with {array.flat[0]:.4g}, which is no label: give labels or scores of classes"
            )
        return _losses(name, map(str, array.reshape(-1)), labels)

    losses = losses_of(x, labels)
    some = np.random.default_rng(0).permutation(n)[:_AGAIN].tolist()
    again = sum(losses_of(x[place : place + 1], [labels[place]])[0] != losses[place] for place in some)
    if again:
        raise InvalidSetting(
            f"{name} answers {again} of {len(some)} examples otherwise when they are asked one by one: it is no "
            "function of one example, so that no certificate is about it"
        )
    return Judged(name, losses, labels, groups)


def _losses(where: object, answers: Iterable[Any], labels: Sequence[str]) -> _Floats:
    """0 where the answer is the label, or the label's score is above all others; else 1.

    Ties, and scores that are no numbers, are wrong. An answer is the label's text, or the same number (1 and 1.0).
    """
    losses: list[bool] = []
    for at, (answer, label) in enumerate(zip(answers, labels, strict=True), 1):
        number = _number(label)
        if isinstance(answer, str):
            word = answer.strip()
            losses.append(word.lower() in ("", "nan") or (word != label.strip() and _number(word) != number))
            continue
        scores = np.array([_number(str(cell)) for cell in answer])
        if number not in range(len(scores)):
            raise InvalidSetting(
                f"{where}: label {label!r} of example {at} is none of the {len(scores)} scores' numbers 0, 1, ..."
            )
        losses.append(not (scores[int(number)] > np.delete(scores, int(number))).all())
    return np.array(losses, np.float64)


def _numbers_of(path: object, column: str, cells: Sequence[str], largest: float = 1.0) -> _Floats:
    """A column of numbers from 0 to the largest."""
    for line, cell in enumerate(cells, 2):
        if not 0 <= _number(cell) <= largest:
            raise InvalidSetting(f"{path}: line {line} has {column} {cell!r}, which is not between 0 and {largest:g}")
    return np.array(cells, np.float64)


def _number(text: str) -> float:
    """NaN where it is no number, which is above and equal to nothing; infinity counts as none."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def overlapping(x: Sequence[NDArray[Any]]) -> list[str]:
    """A word on test sequences that repeat each other, or are windows cut from one text that overlap."""
    again = len(x) - len({sequence.tobytes() for sequence in x})
    notes = [f"{again} of {len(x)} test sequences repeat an earlier one: they are no independent draws"] * bool(again)
    tokens = [sequence for sequence in x if sequence.ndim == 1 and len(sequence) >= 16]
    if len(tokens) < 2 or sum(map(len, tokens)) > 4 * 10**6:
        return notes
    half = max(8, min(map(len, tokens)) // 2)
    starts = {sequence[:half].tobytes() for sequence in tokens if len(np.unique(sequence[:half])) > 4}
    shared = set[bytes]()
    for sequence in tokens:
        windows = np.lib.stride_tricks.sliding_window_view(sequence, half)[1:]
        shared |= starts.intersection(window.tobytes() for window in windows) - {sequence[:half].tobytes()}
    if len(shared) > len(tokens) // 50:
        notes.append(
            f"{len(shared)} of {len(x)} test sequences begin inside of another: windows of one text that overlap are "
            "no independent draws; cut windows that do not overlap, or give each text one vote (groups=)"
        )
    return notes


# -- what they prove


def _score(first: Judged, second: Judged | None, delta: float, looks: int) -> Score:
    """The error of one predictor (S1), or how much more often it errs than a second one (S2); else means (S3, S4).

    Means where losses are graded, groups have one vote each, or examples have weights.
    """
    losses, evidence = first.losses, dict[str, Any](first=first.evidence)
    if second is not None:
        names = f"{first.name} and {second.name}"
        if list(first.labels) != list(second.labels):
            raise InvalidSetting(f"{names} were not given the same examples in the same order: their labels differ")
        if second.weights not in (None, first.weights):
            raise InvalidSetting(f"{names} give the examples different weights")
        losses, evidence = losses - second.losses, {**evidence, "second": second.evidence}
    if first.groups is not None:  # one vote for each group: the mean of its members
        _, which = np.unique(np.array([str(group) for group in first.groups]), return_inverse=True)
        losses = np.bincount(which, losses) / np.bincount(which)
        evidence["groups"] = len(losses)
    if first.weights is None and np.isin(losses, (-1, 0, 1)).all():
        wrong, right, n = int((losses == 1).sum()), int((losses == -1).sum()), len(losses)
        if second is None:
            return Score("error", {"errors": wrong, "n": n}, delta, looks, evidence)
        return Score("difference", {"first": wrong, "second": right, "n": n}, delta, looks, evidence)
    losses = losses if second is None else np.clip((1 + losses) / 2, 0, 1)
    kind = "loss" if second is None else "graded difference"
    return Score(kind, {"losses": losses.tolist(), **(first.weights or {})}, delta, looks, evidence)


def score_lines(own: Judged, other: Judged | None, delta: float, looks: int) -> tuple[dict[str, Score], list[Line]]:
    """The score of one predictor's test examples, and of its difference from another, with their lines."""
    scores = {"error": _score(own, None, delta, looks)}
    lines = [of_score("held-out", scores["error"])]
    if other is not None:
        scores["difference"] = _score(own, other, delta, looks)
        lines.append(of_score(f"against {other.name}", scores["difference"]))
    return scores, lines
