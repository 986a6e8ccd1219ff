"""Margins: read from files, counted without strictness, on the grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boundcalc.checkpoints import CheckpointError
from boundcalc.checkpoints.margins import Margins, read_margins

VALUES = [2.0, -0.5, 1.0, 1.0, 0.25]


@pytest.mark.parametrize("text", ["2 -0.5\n1,1 0.25\n", "[2, -0.5, 1, 1, 0.25]", "margin\n2\n-0.5\n1\n1\n0.25\n"])
def test_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.txt").write_text(text)
    assert read_margins(tmp_path / "m.txt").values.tolist() == VALUES


def test_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.array(VALUES, np.float32))
    assert read_margins(tmp_path / "m.npy").values.tolist() == VALUES


def test_errors_are_counted_without_strictness_and_rounded_up() -> None:
    margins = Margins(np.array(VALUES))
    assert margins.error(-1) == 0
    assert margins.error(2) == 1
    assert 4 / 5 <= margins.error(1.0) <= 4 / 5 * (1 + 1e-15)
    assert margins.error(0.99) == pytest.approx(2 / 5)
    assert margins.grid() == [2, 1, 0, -1]
    assert Margins(np.array([-1.0, 0.0])).grid() == []


def test_logits_are_no_margins(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.ones((4, 2)))
    with pytest.raises(CheckpointError, match=r"shape \(4, 2\)"):
        read_margins(tmp_path / "m.npy")
    np.save(tmp_path / "m.npy", np.ones((4, 1)))
    assert len(read_margins(tmp_path / "m.npy").values) == 4


@pytest.mark.parametrize("text", ["", "a b\n", "1 2 nan\n", "[1, {}]", "{}"])
def test_what_is_no_margin(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(CheckpointError, match="holds no margins"):
        read_margins(tmp_path / "m.txt")
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object))
    with pytest.raises(CheckpointError, match="holds no margins"):
        read_margins(tmp_path / "o.npy")
