"""NumPy archives: one array per member, never pickled."""

from __future__ import annotations

import io
import zipfile
from functools import partial
from pathlib import Path

from numpy.lib import format as npy

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import STORED, Array, Checkpoint, Tensor, sound

_NAMES = {
    dtype.newbyteorder("="): name
    for name, dtype in STORED.items()
    if name != "bfloat16" and not name.startswith("float8")
}


def open_npz(path: Path) -> Checkpoint:
    """The arrays of an archive; each is unpacked at its first use."""
    tensors: dict[str, Tensor] = {}
    with sound(path, "NumPy archive"), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in tensors:
                raise CheckpointError(f"{path} has two arrays {name!r:.80}; fetch it again")
            tensors[name] = _entry(path, archive, info, name)
    return Checkpoint(str(path), tensors)


def _entry(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Tensor:
    with archive.open(info) as member:
        version = npy.read_magic(member)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = reader(member)
        begins = member.tell()
    if dtype.hasobject:
        raise CheckpointError(f"{path}: {name!r} holds Python objects, which are not read: save plain arrays")
    kind = _NAMES.get(dtype.newbyteorder("="))
    if kind is None:
        raise CheckpointError(f"{path}: {name!r} has type {dtype}, which is not a type of weights")
    tensor = Tensor(name, shape, kind, partial(_fetch, path, info.filename), f"{path.name}:{name}")
    if info.file_size - begins != tensor.nbytes:
        raise CheckpointError(f"{path}: {name!r} of shape {shape} does not fit its {info.file_size - begins} bytes")
    return tensor


def _fetch(path: Path, member: str) -> Array:
    with sound(path, "NumPy archive"), zipfile.ZipFile(path) as archive, archive.open(member) as file:
        return npy.read_array(io.BufferedReader(file), allow_pickle=False)  # type: ignore[arg-type]
