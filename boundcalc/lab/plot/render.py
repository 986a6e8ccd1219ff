"""From a specification to an image and the JSON beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.plot import provenance
from boundcalc.lab.plot.data import FigureData
from boundcalc.lab.plot.registry import FIGURES, family
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import house_style

FORMATS = (".png", ".pdf", ".svg", ".pgf")


@dataclass(frozen=True)
class Drawn:
    """A figure that was made: its files, and what the reader should conclude."""

    image: Path
    record: Path
    caption: str


def collect(spec: Spec) -> FigureData:
    """The data of a figure."""
    trials = FIGURES[spec.figure].trials
    if trials == "needs" and not spec.store:
        from boundcalc.lab.plot.measured import make_runs

        raise InvalidSetting(
            f"{spec.figure} draws what training measured: name a store of trials, --store runs.db "
            f"(`{make_runs(spec.but(store='runs.db'))}` makes one)"
        )
    if trials == "none" and spec.store:
        raise InvalidSetting(f"{spec.figure} shows no stored trials: leave out --store")
    return family(spec.figure).collect(spec)


def draw(spec: Spec, data: FigureData) -> Any:
    """The matplotlib figure, within the house style."""
    with house_style(usetex=spec.usetex):
        return family(spec.figure).draw(spec, data)


def caption(spec: Spec, data: FigureData) -> str:
    """What the reader should conclude, in a sentence or two."""
    return family(spec.figure).caption(spec, data)


def check_output(path: Path, beside: tuple[str, ...] = ("format", "spec", "data")) -> None:
    """Refuse a file that could not be written, before anything is computed.

    The numbers go to a JSON of the same name: another file there (a specification, a config.json, an export of trials) is
    kept. One written by an earlier plot, which has the keys `beside`, is replaced.
    """
    if path.suffix.lower() not in FORMATS:
        raise InvalidSetting(f"a figure is written as {', '.join(FORMATS)}; got {path.name!r}: use -o figure.pdf")
    if not path.parent.is_dir():
        raise InvalidSetting(f"there is no directory {path.parent} to write {path.name} to: make it first")
    if path.suffix.lower() == ".pgf" and shutil.which("pdflatex") is None:
        raise BoundcalcError("pgf files need pdflatex to measure text: install TeX Live, or write .pdf")
    side = path.with_suffix(".json")
    if side.exists() and not _has_keys(side, beside):
        raise InvalidSetting(
            f"the numbers of {path.name} go to {side}, which holds something else: choose another name"
        )


def _has_keys(path: Path, keys: tuple[str, ...]) -> bool:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(found, dict) and set(keys) <= found.keys()


def save(spec: Spec, data: FigureData, path: Path, command: str) -> Drawn:
    """Write the image and its JSON; both or neither."""
    check_output(path)
    text = caption(spec, data)
    found = provenance.record(spec, data, command, text)
    suffix = path.suffix.lower()
    partial = path.with_name(f".{path.stem}.{os.getpid()}{suffix}")
    side = path.with_suffix(".json")
    try:
        with house_style(usetex=spec.usetex):
            figure = family(spec.figure).draw(spec, data)
            inside = provenance.inside(found, suffix)
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # a layout that does not fit is no figure
                figure.savefig(partial, **({"metadata": inside} if inside else {}))
            if suffix == ".pgf":
                _complete_pgf(partial)
        side_text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        partial_side = partial.with_suffix(".json")
        partial_side.write_text(_compact(side_text), encoding="utf-8")
        os.replace(partial, path)
        os.replace(partial_side, side)
    except (RuntimeError, OSError) as error:
        if not spec.usetex:
            raise
        raise BoundcalcError(f"--usetex: {_of_latex(str(error))}; leave --usetex out to do without LaTeX") from None
    finally:
        partial.unlink(missing_ok=True)
        partial.with_suffix(".json").unlink(missing_ok=True)
    return Drawn(path, side, text)


def _complete_pgf(path: Path) -> None:
    """Define the macro that Matplotlib expects of a preamble, so that the file needs the package pgf alone."""
    text = path.read_text(encoding="utf-8")
    start = "\\begingroup%\n"
    path.write_text(text.replace(start, start + "\\providecommand{\\mathdefault}[1]{#1}%\n", 1), encoding="utf-8")


def _of_latex(text: str) -> str:
    """What LaTeX complains about, in a line."""
    missing = re.search(r"File `([^']+)' not found", text)
    if missing or "cm-super" in text:
        return f"LaTeX has no {missing[1] if missing else 'cm-super'}: install cm-super and texlive-latex-extra"
    if "dvipng" in text:
        return "PNG needs dvipng: install it, or write .pdf or .svg"
    said = re.search(r"! ([^!]*)", text)
    return "LaTeX cannot set the text: " + " ".join((said[1] if said else text).split())[:150]


def _compact(text: str) -> str:
    """Lists of numbers on one line each."""
    return re.sub(r"\[\s*([^\[\]{}]*?)\s*\]", lambda m: "[" + " ".join(m[1].split()) + "]", text)
