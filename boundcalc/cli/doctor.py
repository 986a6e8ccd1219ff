"""`boundcalc doctor`."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import click

from boundcalc.base import project
from boundcalc.cli.idle import Command
from boundcalc.cli.learning import default_store
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.text import prose

_CORE = ("click", "numpy", "python-flint", "rich", "scipy", "sympy")
_DISTRIBUTIONS = {"yaml": "pyyaml"}
_FOR = {
    "train": "train, sweep, threshold, latent learn",
    "weights": "mappings in YAML (JSON needs nothing)",
    "plot": "plot, gallery, norms --plot",
    "ray": "sweep --backend ray",
    "dask": "sweep --backend dask",
}


class _Finding(NamedTuple):
    """One line: what was looked at, what was found, and what to type where something is missing."""

    what: str
    found: str
    type: str = ""
    failed: bool = False


@click.command(
    cls=Command,
    name="doctor",
    short_help="Versions, extras, device, TeX, store; what to type for what is missing.",
    epilog="""\b
Examples:
  boundcalc doctor
  boundcalc doctor --format json""",
)
@form_option("table", "json")
@click.pass_context
def command(context: click.Context, form: str) -> None:
    """What is installed, what is missing, and what to type for it. Exit code 1 if the library itself cannot work."""
    findings = list(look())
    if form == "json":
        write_json([finding._asdict() for finding in findings])
    else:
        width = max(len(finding.what) for finding in findings)
        for finding in findings:
            told = finding.found + (f": {finding.type}" if finding.type else "")
            click.echo(prose(f"{finding.what:<{width}}  {told}", indent=width + 2))
    if any(finding.failed for finding in findings):
        context.exit(1)


def look() -> Iterator[_Finding]:
    """Every finding; nothing heavy is imported (torch takes seconds) but where its device is asked for."""
    yield _Finding("boundcalc", f"{project.version()}, from {project.origin() or Path(__file__).parents[1]}")
    yield _Finding("python", f"{platform.python_version()} ({sys.executable})")
    for name in _CORE:
        found = _version(name)
        yield _Finding(name, found or "missing", "" if found else f"pip install {name}", not found)
    yield _checker()
    for extra, libraries in project.EXTRAS.items():
        missing = [name for name in libraries if importlib.util.find_spec(name) is None]
        if missing:
            yield _Finding(f"extra {extra}", f"no {', '.join(missing)} (for {_FOR[extra]})", project.install(extra))
        else:
            versions = ", ".join(f"{name} {_version(_DISTRIBUTIONS.get(str(name), str(name)))}" for name in libraries)
            yield _Finding(f"extra {extra}", versions)
    yield _device()
    yield _tex()
    yield _store()
    pages = project.pages()
    yield _Finding("pages", str(pages) if pages else "not installed", "" if pages else project.url())


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _checker() -> _Finding:
    """The least that must work: one bound, found and checked."""
    try:
        from boundcalc import Setting, evaluate

        value = evaluate(Setting.of(depth=1, n_train=10**8)).gap
    except Exception as error:  # whatever it is, that is the finding
        return _Finding("checker", f"{type(error).__name__}: {error}", project.install("all"), True)
    return _Finding("checker", f"a bound was found and checked ({value:.3g})")


def _device() -> _Finding:
    if importlib.util.find_spec("torch") is None:
        return _Finding("device", f"{os.cpu_count()} CPU cores; accelerators need torch", project.install("train"))
    import torch

    found = [f"{os.cpu_count()} CPU cores"]
    if torch.cuda.is_available():
        found += [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return _Finding("device", ", ".join(found))


def _tex() -> _Finding:
    missing = [name for name in ("pdflatex", "bibtex") if shutil.which(name) is None]
    if missing:
        return _Finding(
            "TeX", f"no {' and '.join(missing)} (for articles of derive, plot --usetex)", "install TeX Live"
        )
    return _Finding("TeX", str(shutil.which("pdflatex")))


def _store() -> _Finding:
    path = default_store()
    named = "BOUNDCALC_STORE" if "BOUNDCALC_STORE" in os.environ else "the default"
    if not path.exists():
        return _Finding("store", f"{path} ({named}), not there yet", "boundcalc sweep smoke")
    from boundcalc.base.errors import BoundcalcError
    from boundcalc.lab.train.store import Store

    try:
        with Store(path, create=False, read_only=True) as store:
            return _Finding("store", f"{path} ({named}), {len(store)} trials")
    except BoundcalcError as error:
        return _Finding("store", f"{path} ({named}): {error}", "boundcalc runs verify")
