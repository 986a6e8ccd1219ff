"""What test examples prove of a file of predictions, of an estimator, or of any function."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.certification import Certification, Line, of_score
from boundcalc.lab.scores import WEIGHTS, Judged, difference, judge, read_predictions, score
from boundcalc.predictors.scores import Score


def certify_predictions(
    path: str | Path,
    *,
    against: Any = None,
    groups: str | None = None,
    looks: int = 1,
    delta: float = 0.05,
    largest_weight: float | None = None,
) -> Certification:
    """What a file of predictions proves: no model, and no torch, is needed."""
    judged, largest = read_predictions(path, groups, largest=largest_weight), largest_weight
    if largest is not None and judged.weights is None:
        raise InvalidSetting(f"{path} has no column {', '.join(WEIGHTS)}: leave out the largest weight")
    other = None
    if against is not None:
        column = judged.table is not None and str(against) in judged.table
        other = (
            read_predictions(path, None, str(against), largest)
            if column
            else read_predictions(against, largest=largest)
        )
        other = replace(other, name=str(against)) if column else other
    return _scored(judged, other, delta, looks)


def certify_function(
    model: Any, data: Any, test: Any, against: Any, groups: Any, looks: int, delta: float
) -> Certification:
    """Held-out examples of any function; nothing else is known of it."""
    if data is not None:
        raise InvalidSetting(
            "of a function or an estimator only test examples tell: give test=(x, y), and no training data"
        )
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise InvalidSetting("give the examples that it has not met as test=(x, y)")
    x, y = test
    judged = replace(judge(model, x, y), groups=group_names(groups, len(y)))
    return _scored(judged, None if against is None else judge(against, x, y, "the other"), delta, looks)


_NEED_WEIGHTS = ("norms", "occam", "rule", "p2l", "pac-bayes")


def group_names(groups: Any, n: int) -> tuple[str, ...] | None:
    """What each test example belongs to."""
    if groups is None:
        return None
    names = tuple(str(group) for group in groups)
    if isinstance(groups, str) or len(names) != n:
        raise InvalidSetting(f"groups names what each of the {n} test examples belongs to; got {len(names)} names")
    return names


def score_lines(own: Judged, other: Judged | None, delta: float, looks: int) -> tuple[dict[str, Score], list[Line]]:
    """The score of one predictor's test examples, and of its difference from another, with their lines."""
    scores = {"error": score(own, delta, looks)}
    lines = [of_score("held-out", scores["error"])]
    if other is not None:
        scores["difference"] = difference(own, replace(other, groups=own.groups), delta, looks)
        lines.append(of_score(f"against {other.name}", scores["difference"]))
    return scores, lines


def _scored(own: Judged, other: Judged | None, delta: float, looks: int) -> Certification:
    scores, lines = score_lines(own, other, delta, looks)
    lines += [Line(method, refusal="only its answers are known, no weights") for method in _NEED_WEIGHTS]
    return Certification(own.name, tuple(lines), delta, scores=scores, notes=own.notes)
