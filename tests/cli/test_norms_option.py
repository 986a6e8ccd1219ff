"""`--norm`: norms of your own without a file."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from boundcalc import Budget
from boundcalc.cli._setting import budgets_of
from boundcalc.setting.norms import JSON_NAMES

from .conftest import answer, written


def test_norms_are_those_of_a_file(tmp_path: Path) -> None:
    budgets = {"W_V": {"op": 1.2, "21": 3.0}, "W_1[0]": {"op": 0.5, "rank": 3}}
    file = written(tmp_path / "norms.json", {"C": 1.0, "budgets": budgets})
    typed = "--norm W_V=op:1.2,21:3 --norm W_1[0]=op:0.5,rank:3 --C 1"
    line = "eval --bound best --no-solve --m 1e8"
    assert answer(f"{line} {typed}")["results"] == answer(f"{line} --norms {file}")["results"]


def test_what_torch_computes_is_what_is_meant() -> None:
    """The words are executed on a Linear's weight, which is (out, in), and compared with W = weight.T."""
    torch = pytest.importorskip("torch")
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    words = dict(re.findall(r"^\| `(\w+)` \| .* \| `([^`]*)`[^|]*\|$", page, re.MULTILINE))
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((3, 5))
    values = rng.standard_normal((3, 2, 4))
    W, g, table = weight.T, rng.standard_normal(4), rng.standard_normal((6, 4))
    singular = np.linalg.svd(W)[1]
    right = {
        "op": singular[0],
        "F": math.sqrt((W**2).sum()),
        "21": sum(np.linalg.norm(W[:, j]) for j in range(3)),
        "21T": sum(np.linalg.norm(W[i]) for i in range(5)),
        "11": np.abs(W).sum(),
        "rank": 3,
        "nuclear": singular.sum(),
        "sup": np.abs(g).max(),
        "row": max(np.linalg.norm(row) for row in table),
        "heads": math.hypot(*(max(np.linalg.norm(values[n, h]) for n in range(3)) for h in range(2))),
    }
    assert set(right) == set(words) == set(JSON_NAMES) - {"distance"}

    class Embedding:
        def __init__(self, weight: object) -> None:
            self.weight = weight

    names = {"torch": torch, "w": torch.tensor(weight), "g": torch.tensor(g), "v": torch.tensor(values)}
    names["embedding"] = Embedding(torch.tensor(table))
    for name, code in words.items():
        found = eval(code, {}, names)
        assert float(found) == pytest.approx(float(right[name])), name


def test_every_norm_can_be_typed() -> None:
    typed = "W=op:1,F:1,21:2,21T:2,11:3,nuclear:4,rank:2,sup:1,row:1"
    assert budgets_of([typed])["W"] == Budget(1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 2, 1.0, 1.0)
