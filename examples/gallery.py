"""The figures of figures/: made one after the other, with their page.

python examples/gallery.py                 make all of them (12 CPU-minutes from an empty store)
python examples/gallery.py --redraw        draw all of them again from their JSON
python examples/gallery.py --only length   make or (--redraw) draw one of them
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from boundcalc.lab.figures.data import Figure, read

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "figures"
SCRIPTS: Mapping[str, tuple[str, ...]] = {
    "overlay": ("edelman2022/overlay.py",),
    "both-sides": ("edelman2022/both_sides.py",),
    "constants": ("edelman2022/constants.py",),
    "length": ("edelman2022/length.py",),
    "samples": ("edelman2022/samples.py",),
    "training": ("edelman2022/training.py",),
    "explained": ("edelman2022/explained.py",),
    "parity": ("edelman2022/parity.py",),
    "norms": ("edelman2022/norms.py",),
    "attention-error": ("zhang2022/infer.py", "--repetitions", "1000"),
    "gap-vs-L": ("zhang2022/learn.py", "--kind", "masked"),
}
"""The script of each figure of figures/, in their order, with its options."""
HEAD = """\
# Figures

Every image has a JSON of its numbers next to it; the command below each makes both.
[docs/figures.md](../docs/figures.md) says how to read them.
"""


def make(name: str, *, redraw: bool) -> None:
    """Run the script of one figure."""
    source, image = FOLDER / f"{name}.json", f"figures/{name}.png"
    script, *options = SCRIPTS[name]
    options = ["--from", str(source), "-o", image] if redraw else [*options, "-o", image]
    subprocess.run([sys.executable, f"examples/{script}", *options], cwd=ROOT, check=True)


def page(figures: dict[str, Figure]) -> str:
    """The page of all figures."""
    parts = [HEAD]
    for name, figure in figures.items():
        parts.append(f"## {figure.title}\n\n![{figure.alt}]({name}.png)\n\n{figure.caption}\n\n`{figure.command}`\n")
    return "\n".join(parts)


def main() -> None:
    """Make or draw the requested figures, then the page."""
    parser = argparse.ArgumentParser(description="The figures of figures/.")
    parser.add_argument("--redraw", action="store_true", help="from the JSON files")
    parser.add_argument("--only", choices=list(SCRIPTS), help="one figure")
    options = parser.parse_args()
    for name in [options.only] if options.only else SCRIPTS:
        make(name, redraw=options.redraw)
    (FOLDER / "README.md").write_text(page({name: read(FOLDER / f"{name}.json") for name in SCRIPTS}), encoding="utf-8")


if __name__ == "__main__":
    main()
