"""NumPy arrays in archives (pickled objects are refused, and of a damaged file one line says so), and their digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by name."""
    try:
        # opened here: of a damaged archive the library leaves its own open
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:  # any byte may be damaged: a library raises anything
        raise InvalidSetting(f"{path} is not an .npz file of plain arrays: {' '.join(str(error).split())}") from None


def digest_of_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Sha256 of names, types, shapes and bits."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {value.dtype.str} {value.shape} ".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()
