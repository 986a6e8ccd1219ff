"""From a specification to an image and the JSON beside it."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boundcalc.base import output
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.plot import provenance
from boundcalc.lab.plot.alt import alt_text
from boundcalc.lab.plot.data import FigureData
from boundcalc.lab.plot.registry import FIGURES, family
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import house_style

_FORMATS = (".png", ".pdf", ".svg", ".pgf")


@dataclass(frozen=True)
class Drawn:
    """A figure that was made: its files, and what the reader should conclude."""

    image: Path
    record: Path
    caption: str


def collect(spec: Spec) -> FigureData:
    """The data of a figure."""
    if FIGURES[spec.figure].trials == "needs" and not spec.store:
        from boundcalc.lab.plot.runs import make_runs

        raise InvalidSetting(
            f"{spec.figure} draws what training measured: name a store of trials, --store runs.db "
            f"(`{make_runs(spec.but(store='runs.db'))}` makes one)"
        )
    return family(spec.figure).collect(spec)


def draw(spec: Spec, data: FigureData) -> Any:
    """The matplotlib figure, within the house style."""
    with house_style(usetex=spec.usetex):
        return family(spec.figure).draw(spec, data)


def caption(spec: Spec, data: FigureData) -> str:
    """What the reader should conclude, in a sentence or two."""
    return family(spec.figure).caption(spec, data)


def check_output(path: Path, *, record: bool = True) -> None:
    """Refuse a file that could not be written, before anything is computed.

    The numbers go to a JSON of the same name; without `record` the JSON that is there stays as it is.
    """
    if path.suffix.lower() not in _FORMATS:
        raise InvalidSetting(f"a figure is written as {', '.join(_FORMATS)}; got {path.name!r}: use -o figure.pdf")
    if not path.parent.is_dir():
        raise InvalidSetting(f"there is no directory {path.parent} to write {path.name} to: make it first")
    if path.suffix.lower() == ".pgf" and shutil.which("pdflatex") is None:
        raise BoundcalcError("pgf files need pdflatex to measure text: install TeX Live, or write .pdf")
    output.check(path)
    if record:
        output.check(path.with_suffix(".json"))


def save(spec: Spec, data: FigureData, path: Path, command: str, *, record: bool = True) -> Drawn:
    """Write the image and its JSON; both or neither. Without `record` the JSON that is there stays as it is."""
    check_output(path, record=record)
    text = caption(spec, data)
    found = provenance.record(spec, data, command, text, alt_text(spec, data, text))
    side = path.with_suffix(".json")
    side_text = _compact(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    with house_style(usetex=spec.usetex), output.writing(path) as image:
        try:
            _draw(family(spec.figure).draw(spec, data), image, provenance.inside(found, path.suffix.lower()))
        except (RuntimeError, OSError) as error:
            if not spec.usetex:
                raise
            raise BoundcalcError(f"--usetex: {_of_latex(str(error))}; leave --usetex out to do without LaTeX") from None
        if record:
            output.write_text(side, side_text)
    return Drawn(path, side, text)


def save_image(figure: Any, path: Path, title: str, **options: Any) -> None:
    """Write a figure that has no specification."""
    with output.writing(path) as image:
        _draw(figure, image, provenance.titled(title, path.suffix.lower()), **options)


def _draw(figure: Any, path: Path, inside: Mapping[str, Any], **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that does not fit is no figure
        figure.savefig(path, **({"metadata": inside} if inside else {}), **options)
    if path.suffix.lower() == ".pgf":
        path.write_text(_complete_pgf(path.read_text(encoding="utf-8")), encoding="utf-8")


def _complete_pgf(text: str) -> str:
    """Define the macro that Matplotlib expects of a preamble, so that the file needs the package pgf alone."""
    start = "\\begingroup%\n"
    text = text.replace(start, start + "\\providecommand{\\mathdefault}[1]{#1}%\n", 1)
    return text.replace("\n", "\n%% drawn by boundcalc\n", 1)


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
