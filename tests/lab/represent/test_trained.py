"""Norms of trained networks beside those of the construction."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from boundcalc.cli import main
from boundcalc.lab.represent.construct import construct
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.positions import orthonormal
from boundcalc.lab.represent.trained import alike, constructed, trained


def record(scale: float = 1.0, *, train: float = 0.0, test: float = 0.01, **changes: Any) -> dict[str, Any]:
    """A trial of a one-block network as a store writes it, all its norms known."""
    budgets: dict[str, Any] = {"embedding": {"row": 1.0}, "positions": {"row": 2.0}, "b_1[0]": {"op": 9.0}}
    budgets |= {"W_QK[0]": {"op": 2.0 * scale}, "W_V[0]": {"op": 3.0}, "W_1[0]": {"op": 5.0}, "readout": {"op": 7.0}}
    return {
        "config": {
            "architecture": {"style": "edelman", "depth": 1, "heads": 1, **changes.pop("architecture", {})},
            "task": {"task": "boolean", "T": 10, "function": "conjunction", "s": 3, **changes.pop("task", {})},
        },
        "result": {
            "status": "done",
            "train": {"error": train, "margins": {"0": 2.0}},
            "test": {"error": test},
            "norms": {"budgets": budgets},
            **changes,
        },
    }


def test_columns_of_trials() -> None:
    (found,) = trained([record(scale) for scale in (1.0, 2.0, 4.0)], 0.05)
    assert (found.name, found.trials) == ("edelman, depth 1, 1 head, d 64", 3)
    assert found.median["W_QK"] == 4.0
    assert found.median["scores"] == 3.0**2 * 4.0
    assert found.median["stretch"] == 3.0 * 3 * 5 * 7 / 2
    assert found.low["W_QK"] < found.median["W_QK"] < found.high["W_QK"]


def test_scale_moved_between_matrices_changes_neither_scores_nor_stretch() -> None:
    moved = record()
    budgets = moved["result"]["norms"]["budgets"]
    budgets["embedding"]["row"], budgets["positions"]["row"] = 2.0, 4.0
    budgets["W_QK[0]"]["op"] /= 4
    budgets["W_V[0]"]["op"] /= 2
    budgets["readout"]["op"] *= 5
    moved["result"]["train"]["margins"]["0"] *= 5
    (before,), (after,) = trained([record()], 0.05), trained([moved], 0.05)
    for name in ("scores", "stretch"):
        assert after.median[name] == pytest.approx(before.median[name])
        assert after.median["rows"] != before.median["rows"]


def test_only_what_was_learned_counts() -> None:
    poor = [record(train=0.1), record(test=0.2), record(status="diverged")]
    assert trained(poor, 0.05) == []
    assert [group.trials for group in trained([record(), *poor], 0.05)] == [1]
    styles = [record(), record(architecture={"heads": 4}), record(architecture={"style": "pre"})]
    groups = trained(styles, 0.05)
    assert [group.trials for group in groups] == [1, 1, 1]
    assert "stretch" not in groups[2].median  # a normalised row is as long as LayerNorm makes it


def test_the_construction() -> None:
    made = construct(parse("AND(0, 1, 2)"), orthonormal(10), "threshold")
    found = constructed(made.network, 1.0).median
    norms = made.network.norms.budgets
    assert found["scores"] == norms["W_QK[0]"].op
    assert found["stretch"] == pytest.approx(float(norms["W_V[0]"].op or 0) * float(norms["W_1[0]"].op or 0))


def test_functions_are_told_apart_but_for_the_places_of_their_bits() -> None:
    tables = list(itertools.product((0, 1), repeat=8))
    rng = np.random.default_rng(0)
    for _ in range(150):
        one, other = (tables[i] for i in rng.integers(0, len(tables), 2))
        if rng.random() < 0.3:  # independent tables are seldom alike
            order = rng.permutation(3)
            other = tuple(np.asarray(one).reshape(2, 2, 2).transpose(order).ravel().tolist())
        renamed = {
            tuple(np.asarray(one).reshape(2, 2, 2).transpose(p).ravel().tolist())
            for p in itertools.permutations(range(3))
        }
        first, second = SparseFunction((4, 1, 6), one), SparseFunction((0, 2, 5), other)
        if first.minimised().arity == second.minimised().arity == 3:
            assert alike(first, second) == (other in renamed)
    assert alike(parse("~x0 & x1"), parse("x7 & ~x3"))
    assert not alike(parse("~x0 & x1"), parse("x7 & x3"))
    assert alike(parse("AND(0..39)"), parse("AND(10..49)"))
    assert not alike(parse("AND(0..39)"), parse("AND(0..38)"))


def test_the_command_reads_trials_of_the_same_function_and_length(tmp_path: Path) -> None:
    others = [record(task={"T": 12}), record(task={"function": "parity"}), record(task={"s": 2})]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([record(), record(4.0), *others]))
    words = ["represent", "x3 & x7 & x9", "--T", "10", "--store", str(path)]
    shown = CliRunner().invoke(main, words, prog_name="boundcalc")
    assert shown.exit_code == 0, shown.output
    assert "edelman, depth 1, 1 head, d 64: 2 trials" in shown.stdout
    data = json.loads(CliRunner().invoke(main, [*words, "--format", "json"]).stdout)
    construction, found = data["trained"]
    assert construction["norms"]["margin"] == [1.0, 1.0, 1.0]
    assert found["trials"] == 2
    assert found["norms"]["scores"][0] == 9 * 5.0
    wrong = CliRunner().invoke(main, ["represent", "x3 ^ x7", "--T", "10", "--store", str(path)], prog_name="boundcalc")
    assert wrong.exit_code == 1
    assert "has no trial of this function at T = 10" in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1
