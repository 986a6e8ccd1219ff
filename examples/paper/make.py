"""Writes what the paper takes from the library: the bound, a table, the numbers in the text, macros, bibliography.

Run `python examples/paper/make.py` in the repository's root, then in examples/paper
`pdflatex paper && bibtex paper && pdflatex paper && pdflatex paper`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc import Setting, evaluate
from boundcalc.theorems import edelman2022, trauger2024
from boundcalc.theorems.derivation import derive
from boundcalc.theorems.render import files

HERE = Path(__file__).parent
SIZES = {"m": 10**10, "d": 64, "heads": 1, "gamma": 1, "delta": 0.05}
LENGTHS = (64, 1024, 16384)
DEPTHS = (1, 2, 3)


def power_of_ten(value: float) -> str:
    """A number as LaTeX, rounded up."""
    from math import ceil, floor, log10

    if 0.001 <= value < 1000:
        digits = 2 - floor(log10(value))
        return f"{ceil(value * 10**digits) / 10**digits:.{max(0, digits)}f}"
    exponent = floor(log10(value))
    return rf"{ceil(value / 10**exponent * 100) / 100:.2f}\cdot 10^{{{exponent}}}"


def table() -> str:
    """Gap against depth and sequence length, next to the checked number of the same policy."""
    rows = [r"\begin{tabular}{rrrr}", r"\hline depth & $T$ & formula & checked \\ \hline"]
    for depth in DEPTHS:
        for length in LENGTHS:
            formula = edelman2022.gap.value(C=1, T=length, depth=depth, **SIZES)
            setting = Setting.of(C=1.0, depth=depth, seq_len=length, m=SIZES["m"], d=SIZES["d"], gamma=SIZES["gamma"])
            checked = 10 ** evaluate(setting, "closed").log10
            rows.append(rf"{depth} & {length} & ${power_of_ten(formula)}$ & ${power_of_ten(checked)}$ \\")
    return "\n".join([*rows, r"\hline", r"\end{tabular}"]) + "\n"


def numbers() -> str:
    """Macros for the numbers in the text."""
    point = {"C": 1, "depth": 2, "T": 1024, **SIZES}
    slope = edelman2022.gap.exponents(**point)
    free = trauger2024.gap.value(K=2, **{name: value for name, value in point.items() if name != "T"})
    values = {
        "TheGap": power_of_ten(edelman2022.gap.value(**point)),
        "TheSlopeT": f"{slope['T']:.3f}",
        "TheSlopeM": f"{slope['m']:.3f}",
        "TheFreeGap": power_of_ten(free),
    }
    return "".join(f"\\newcommand{{\\{name}}}{{{value}}}\n" for name, value in values.items())


def main(folder: Path = HERE) -> list[Path]:
    """All generated files."""
    bound = files(derive("edelman2022"), full=False, fragment=True)
    written = {
        "bound.tex": f"\\begin{{equation}}\\label{{eq:bound}}\n{edelman2022.latex()}\n\\end{{equation}}\n",
        "table.tex": table(),
        "numbers.tex": numbers(),
        "boundcalc-macros.tex": bound["boundcalc-macros.tex"],
        "boundcalc.bib": f"{bound['boundcalc.bib']}\n{trauger2024.source.bibtex}\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in written]


if __name__ == "__main__":
    for path in main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE):
        print(path)
