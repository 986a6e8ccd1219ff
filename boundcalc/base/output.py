"""The one place that writes files, so that no output destroys anything.

A file is written beside its place and renamed, so that a full disk leaves what was there. What is there is replaced only if
this package wrote it, as the same kind of file, and, where a digest tells, nobody changed it since; `force` replaces other
files too, but never an input of the same command.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path


class OutputError(BoundcalcError):
    """A file that cannot be written."""


class Kind(NamedTuple):
    """A kind of file: what it is called, and whether a file that is there is one that this package wrote."""

    words: str
    ours: Callable[[Path], bool]


@dataclass
class _Command:
    """The files of the command that is running."""

    reads: dict[str, str] = field(default_factory=dict[str, str])
    writes: tuple[Path, ...] = ()
    force: bool = False
    kinds: Mapping[Path, Kind] = field(default_factory=dict)


_RUNNING: ContextVar[_Command | None] = ContextVar("boundcalc_files", default=None)


@contextmanager
def command(
    reads: Mapping[str, str],
    writes: Iterable[Path],
    kinds: Mapping[Path, Kind] | None = None,
    *,
    force: bool = False,
) -> Iterator[None]:
    """While this lasts, inputs (path: what names it) are never written, and nothing but the declared outputs is.

    `kinds` are the files known in advance: they are looked at now, and again by `check_again`.
    """
    places = tuple(map(_place, writes))
    found = _Command({_real(path): name for path, name in reads.items()}, places, force, kinds or {})
    token = _RUNNING.set(found)
    try:
        check_again()
        yield
    finally:
        _RUNNING.reset(token)


def reading(path: Path | str, name: str = "") -> None:
    """Note an input that no option names by itself, such as the store of a specification file."""
    running = _RUNNING.get()
    if running is not None:
        running.reads.setdefault(_real(path), name)


def check_again() -> None:
    """Look at the files of the running command once more: since then it has told more of its inputs."""
    running = _RUNNING.get() or _Command()
    for path, kind in running.kinds.items():
        check(path, kind)


def check(path: Path | str, kind: Kind, *, force: bool = False) -> None:
    """Refuse a file that may not be written, before anything is computed."""
    running = _RUNNING.get() or _Command()
    target = _place(path)
    if running.writes and not any(target == place or place in target.parents for place in running.writes):
        raise RuntimeError(f"{path} is written by an option that is not declared as an output")
    if not target.parent.is_dir():
        raise InvalidSetting(f"there is no directory {target.parent} to write {target.name} to: make it first")
    if not target.exists():
        return
    if target.is_dir():
        raise InvalidSetting(f"{path} is a directory: name a file")
    for source, name in running.reads.items():
        if _same(target, source) or (_path(source) in target.parents and not _recognised(target, kind)):
            said = f" ({name})" if name else ""
            raise InvalidSetting(
                f"{path} is an input of this command{said}, and would be overwritten: name another file"
            )
    if not target.is_file() or force or running.force:  # a device or a pipe keeps nothing
        return
    if not target.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidSetting(f"{path} is write-protected: choose another name, or replace it with --force")
    if target.stat().st_size and not _recognised(target, kind):
        raise InvalidSetting(
            f"{path}, which holds something else than {kind.words} as this command writes it, would be overwritten: "
            "choose another name, or replace it with --force"
        )


def apart(paths: Iterable[Path | str]) -> None:
    """Refuse two outputs of one name: the later would replace the earlier."""
    seen: dict[Path, Path | str] = {}
    for path in paths:
        place = _place(path)
        if place in seen and (place.is_file() or not place.exists()):
            raise InvalidSetting(f"two outputs would be written to {path}: give them different names")
        seen[place] = path


@contextmanager
def writing(path: Path | str, kind: Kind, *, force: bool = False) -> Iterator[Path]:
    """A path to write to; what was written there becomes the file once all went well.

    Links are followed: the file that a link points to is replaced, not the link.
    """
    check(path, kind, force=force)
    target = _place(path)
    if target.exists() and not target.is_file():
        with _named(path):
            yield target
        return
    part = target.with_name(f".{os.urandom(6).hex()}{target.suffix}")
    try:
        with _named(path):
            yield part
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            with part.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def write_bytes(path: Path | str, data: bytes, kind: Kind, *, force: bool = False) -> None:
    """All of a file or nothing of it."""
    with writing(path, kind, force=force) as part:
        part.write_bytes(data)


def write_text(path: Path | str, text: str, kind: Kind, *, force: bool = False) -> None:
    """All of a text or nothing of it."""
    write_bytes(path, text.encode("utf-8"), kind, force=force)


def write_json(path: Path | str, data: Any, kind: Kind, *, force: bool = False) -> None:
    """JSON in the layout by which `json_file` knows it again."""
    write_text(path, _laid_out(data), kind, force=force)


def append_line(path: Path | str, line: str) -> None:
    """One more line of a file that `writing` began."""
    with _named(path), _path(path).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def make_folder(path: Path | str) -> Path:
    """A folder for files, with those above it."""
    with _named(path):
        _path(path).mkdir(parents=True, exist_ok=True)
    return _path(path)


def readable(path: Path | str, error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read, its name said once."""
    why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is no text"
    return f"cannot read {path}: {why}"


# -- kinds


def json_file(fits: Callable[[Any], bool]) -> Callable[[Path], bool]:
    """JSON of some shape, in the layout of `write_json`: a file laid out otherwise was written by somebody else."""

    def ours(path: Path) -> bool:
        from json import loads

        text = path.read_text(encoding="utf-8")
        data = loads(text)
        return text == _laid_out(data) and fits(data)

    return ours


def begins(*heads: bytes) -> Callable[[Path], bool]:
    """Files that begin with one of some bytes."""

    def ours(path: Path) -> bool:
        with path.open("rb") as file:
            return file.read(max(map(len, heads))).startswith(heads)

    return ours


def holds(word: bytes) -> Callable[[Path], bool]:
    """Files with these bytes somewhere in them."""
    return lambda path: word in path.read_bytes()


_SIGNATURE = "written by boundcalc "
_COMMENTS = {".tex": ("% ", ""), ".md": ("<!-- ", " -->"), ".html": ("<!-- ", " -->"), ".bib": ("% ", "")}


def signed(name: str, text: str) -> str:
    """A text with a last line that tells whether anybody has changed it since."""
    start, end = _COMMENTS.get(_path(name).suffix, ("# ", ""))
    text = text if text.endswith("\n") else text + "\n"
    return f"{text}{start}{_SIGNATURE}{_digest(text)}{end}\n"


def unchanged(path: Path) -> bool:
    """Whether a file is as `signed` made it."""
    text = path.read_text(encoding="utf-8")
    body, found, rest = text.removesuffix("\n").rpartition("\n")
    return bool(found) and f"{_SIGNATURE}{_digest(body + found)}" in rest


def _digest(text: str) -> str:
    import hashlib  # where used: no command that writes nothing needs it

    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def _laid_out(data: Any) -> str:
    import json

    return json.dumps(data, indent=1) + "\n"


# -- paths


def _recognised(path: Path, kind: Kind) -> bool:
    """Whether a file is of a kind; one that cannot be read as such is not."""
    try:
        return kind.ours(path)
    except Exception:  # whatever is wrong with it, and each format has its own errors
        return False


def _path(path: Path | str) -> Path:
    """The path of a name. The library of paths is for commands that meet files: few evaluations do."""
    from pathlib import Path

    return Path(path)


def _place(path: Path | str) -> Path:
    """Where a file is, links followed."""
    return _path(os.path.realpath(path))


def _real(path: Path | str) -> str:
    return os.path.realpath(path)


def _same(target: Path, source: str) -> bool:
    """Whether two names are of one file: also by a hard link, or on a system that ignores case."""
    try:
        return target == _path(source) or os.path.samefile(target, source)
    except OSError:
        return False


@contextmanager
def _named(path: Path | str) -> Iterator[None]:
    """Errors of the system, with the name of the file."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}; what was there before is as it was"
        ) from error
