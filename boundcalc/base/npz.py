"""NumPy archives of plain arrays: pickled objects are refused, and of a damaged file one line says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import is_zipfile

import numpy as np
from numpy.lib.npyio import NpzFile

from boundcalc.base.errors import BoundcalcError, InvalidSetting


@contextmanager
def plain_arrays(
    path: str | Path, what: str = "plain arrays", writer: str = "np.savez(path, x=..., y=...)"
) -> Iterator[NpzFile]:
    """The arrays of an .npz file, each read at its first use; `what` they should be, and what writes such a file.

    Any byte of the file may be damaged: whatever a library raises while one is read becomes an `InvalidSetting`.
    """
    if Path(path).is_file() and not is_zipfile(path):
        raise InvalidSetting(f"{path} is not an .npz file: {writer} writes one")
    try:
        # opened here: of a damaged archive the library leaves its own open
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            yield file
    except BoundcalcError:
        raise
    except Exception as error:
        raise InvalidSetting(f"{path} is not an .npz file of {what}: {' '.join(str(error).split())}") from None
