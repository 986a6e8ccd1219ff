"""Ten lines from a theorem to an equation in a paper, a number and a citation.

Run it with `python examples/import_a_bound.py`.
"""

from __future__ import annotations


def main() -> tuple[str, float, str]:
    """The equation, the gap at one setting, and the BibTeX."""
    from boundcalc.theorems import edelman2022 as bound

    equation = bound.latex()
    gap = bound.lambdify("m", C=1, T=512, depth=2, d=64, heads=1, gamma=0.5, delta=0.05)
    return equation, float(gap(1e9)), bound.cite()


if __name__ == "__main__":
    latex, value, citation = main()
    print(f"{latex}\n\ngap <= {value:.4f} at C = 1, T = 512, m = 1e9, gamma = 1/2, two blocks\n\n{citation}")
