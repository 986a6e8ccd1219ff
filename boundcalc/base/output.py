"""The one place that writes files, so that no output destroys anything.

A file is written next to its place and renamed, so a full disk leaves what was there. An existing file is replaced only
with `force`, and an input of the same command is never replaced.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from boundcalc.base.errors import BoundcalcError, InvalidSetting


class _Command(NamedTuple):
    """The inputs of the running command (path: option), and whether it was called with --force."""

    reads: dict[str, str]
    force: bool = False


_RUNNING: ContextVar[_Command | None] = ContextVar("boundcalc_files", default=None)


@contextmanager
def command(reads: Mapping[str, str], *, force: bool = False) -> Iterator[None]:
    """While this lasts, the inputs (path: option) are never written; with `force` other files are replaced."""
    token = _RUNNING.set(_Command(dict(reads), force))
    try:
        yield
    finally:
        _RUNNING.reset(token)


def reading(path: Path | str, name: str = "") -> None:
    """Note an input that no option names by itself, such as the store of a specification file."""
    running = _RUNNING.get()
    if running is not None:
        running.reads.setdefault(os.fspath(path), name)


def check(path: Path | str, *, force: bool = False, appends: bool = False) -> None:
    """Refuse a file that may not be written; `appends`: one that is continued where it exists."""
    running, target = _RUNNING.get() or _Command({}), Path(path)
    if not target.parent.is_dir():
        raise InvalidSetting(f"there is no directory {target.parent} to write {target.name} to: make it first")
    if target.is_dir():
        raise InvalidSetting(f"{path} is a directory: name a file")
    for source, name in running.reads.items():
        if _same(target, Path(source)):
            option = f" ({name})" if name else ""
            raise InvalidSetting(
                f"{path} is an input of this command{option}, and would be overwritten: name another file"
            )
    if os.path.lexists(target) and not (appends or force or running.force or _is_device(target)):
        what = f"is a link to {os.readlink(target)}" if target.is_symlink() else "exists"
        raise InvalidSetting(f"{path} {what}: choose another name, or replace it with --force (Python: force=True)")


def apart(paths: Iterable[Path | str]) -> None:
    """Refuse two outputs of one name: the later would replace the earlier."""
    files = Counter(os.path.realpath(path) for path in paths if not _is_device(Path(path)))
    for path, count in files.items():
        if count > 1:
            raise InvalidSetting(f"two outputs would be written to {path}: give them different names")


@contextmanager
def writing(path: Path | str, *, force: bool = False) -> Iterator[Path]:
    """A path to write to; what was written there becomes the file once all went well.

    A link is replaced itself: the file it points to stays as it is.
    """
    check(path, force=force)
    target = Path(path)
    device = _is_device(target)
    part = target if device else target.with_name(f".{os.urandom(6).hex()}{target.suffix}")
    try:
        yield part
        if not device:
            with part.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(part, target)
    except OSError as error:
        raise BoundcalcError(
            f"cannot write {path}: {error.strerror or error}; what was there before is as it was"
        ) from error
    finally:
        if not device:
            part.unlink(missing_ok=True)


def write_bytes(path: Path | str, data: bytes, *, force: bool = False) -> None:
    """All of a file or nothing of it."""
    with writing(path, force=force) as part:
        part.write_bytes(data)


def write_text(path: Path | str, text: str, *, force: bool = False) -> None:
    """All of a text or nothing of it."""
    write_bytes(path, text.encode("utf-8"), force=force)


def write_json(path: Path | str, data: Any, *, force: bool = False) -> None:
    """All of a JSON document or nothing of it."""
    write_text(path, json.dumps(data, indent=1) + "\n", force=force)


def make_folder(path: Path | str) -> Path:
    """A folder for files, with those above it."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BoundcalcError(f"cannot make the folder {path}: {error.strerror or error}") from error
    return Path(path)


def safetensors_name(path: Path | str) -> None:
    """Refuse a name that promises another format than the one a model is written in."""
    if Path(path).suffix != ".safetensors":
        raise InvalidSetting(f"a model is written as safetensors, got {Path(path).name!r}: name it *.safetensors")


def _is_device(target: Path) -> bool:
    """Whether what is written there goes to a device, to a pipe, or where /dev/stdout leads."""
    system = target.parent in (Path("/dev"), Path("/dev/fd")) or target.is_relative_to("/proc")
    return target.exists() and (system or not target.is_file())


def _same(target: Path, source: Path) -> bool:
    """Whether two names are of one file, also by links, or the first lies in the second, a folder."""
    folder = Path(os.path.realpath(target.parent))
    inside = Path(os.path.realpath(source)) in (folder, *folder.parents)
    return inside or (target.exists() and source.exists() and target.samefile(source))
