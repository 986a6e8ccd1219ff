"""An answer is right where its score is above 0, in a network and in a margin; the law of methods holds theirs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from boundcalc.base.answers import count_wrong, wrong
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.margins import Margins


def test_scores_that_are_not_one_number_per_example_are_refused() -> None:
    assert count_wrong(np.array([1.0, math.nan, 0.5]), 3, 0.5) == 2
    for scores in (np.zeros((3, 1)), np.zeros(2), np.array(1.0)):
        with pytest.raises(InvalidSetting, match="one number per example"):
            count_wrong(scores, 3)


def test_a_margin_that_is_nan_is_none() -> None:
    margins = Margins(np.array([math.nan, 2.0, 1.0, -1.0]))
    assert margins.error(1.0) == pytest.approx(0.75)
    assert sorted(margins.grid()) == [-1, 0]
    torch = pytest.importorskip("torch")
    from boundcalc.lab.train.measure import margin_summary
    from boundcalc.lab.train.stack import wrongs
    from boundcalc.lab.train.tasks import Shape

    assert margin_summary(torch.tensor([1.0, math.nan, 2.0]))["0"] == -1e30
    outputs = torch.tensor([[[math.nan], [math.inf], [-0.0], [1.0]]])
    answers: Any = wrongs(Shape("rows", 1, "binary", width=1), outputs, torch.ones(1, 4, dtype=torch.long))
    assert answers.tolist() == [[1.0, 0.0, 1.0, 0.0]]
    assert wrong(torch.tensor([math.nan, 1.0])).tolist() == [True, False]
