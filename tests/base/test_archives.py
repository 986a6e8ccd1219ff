"""Archives of arrays: whatever byte of one is damaged, a clear line says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.npz import read_arrays
from boundcalc.checkpoints.data import sequences
from boundcalc.lab.train.tasks.arrays import ArraysTask
from boundcalc.predictors.data import Data

READERS: dict[str, Any] = {
    "examples of a certificate": lambda path: Data.load(str(path)),
    "examples of a model": sequences,
    "a task": lambda path: ArraysTask(path=str(path)),
}


def written(path: Path) -> bytes:
    np.savez_compressed(path, x=np.arange(60).reshape(20, 3), y=np.arange(20) % 2)
    return path.read_bytes()


def test_damage_is_one_line_or_none(tmp_path: Path) -> None:
    """A byte here and there is read by nobody; all others are noticed."""
    path = tmp_path / "a.npz"
    whole = written(path)
    true, said = read_arrays(path), list[str]()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            found = read_arrays(path)
        except InvalidSetting as error:
            said.append(str(error))
        else:
            assert all(np.array_equal(found[name], true[name]) for name in found)
    assert len(said) > len(whole) / 2
    assert not any("\n" in line for line in said)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_what_is_cut_short_or_changed(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    whole = written(path)
    middle = whole.index(b"x.npy") + 60
    changed = whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
    for content in (whole[: len(whole) // 2], changed, b"no archive"):
        path.write_bytes(content)
        with pytest.raises(InvalidSetting, match=r"is not an \.npz file"):
            READERS[reader](path)
