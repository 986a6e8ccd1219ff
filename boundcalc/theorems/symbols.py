"""Every symbol of the formulas once: name, LaTeX, assumptions, meaning. Importing this module imports sympy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.fields import specs
from boundcalc.setting import Architecture, Norms, Sample


@dataclass(frozen=True, slots=True)
class Entry:
    """A symbol with what a reader needs to know of it.

    Attributes:
        symbol: the sympy symbol; its name is how text, code and keyword arguments call it.
        latex: how papers print it.
        meaning: a few words, their mathematics marked as in `boundcalc.theorems.prose`.
        field: the field of `Setting.of` it stands for, if any.
        typical: a range of ordinary values, for numerical checks.
        above: values are above this,
        below: below this,
        most: and at most this.
    """

    symbol: sympy.Symbol
    latex: str
    meaning: str
    field: str = ""
    typical: tuple[float, float] = (0.5, 4.0)
    above: float = 0.0
    below: float = math.inf
    most: float = math.inf

    def check(self, value: Any, *, whole: bool) -> None:
        """Refuses a number that the symbol cannot stand for; `whole`: also a size that is no whole number."""
        name = self.symbol.name
        if whole and self.symbol.is_integer and not value.is_integer:
            raise InvalidSetting(f"{name} must be a whole number, got {value}")
        if not self.above < value < self.below or value > self.most:
            limits = [f"above {self.above:g}"]
            limits += [f"below {self.below:g}"] if self.below < math.inf else []
            limits += [f"at most {self.most:g}"] if self.most < math.inf else []
            raise InvalidSetting(f"{name} must be {' and '.join(limits)}, got {value}")


def _real(name: str) -> Any:  # symbols stand in for floats and sizes alike, so they are typed as neither
    return sympy.Symbol(name, positive=True)


def _whole(name: str) -> Any:
    return sympy.Symbol(name, integer=True, positive=True)


C, K, B_w = _real("C"), _real("K"), _real("B_w")
gamma, delta, eps, target = _real("gamma"), _real("delta"), _real("epsilon"), _real("target")
T, m, depth, d, heads, s, rank = (_whole(name) for name in ("T", "m", "depth", "d", "heads", "s", "rank"))
vocabulary = _whole("vocabulary")
L_s, B_X, c = _real("L_s"), _real("B_X"), _real("c")
p, S_p = _real("p"), _real("S_p")
C_V, K_V, K_QK = _real("C_V"), _real("K_V"), _real("K_QK")
A_s, A_in, B_in, L_out, c_n, mu = (_real(name) for name in ("A_s", "A_in", "B_in", "L_out", "c_n", "mu"))
L, rho, kappa, M, g, smoothness = _whole("L"), *(_real(name) for name in ("rho", "kappa", "M", "g", "smoothness"))
temperature, kappa_w, e_pre = _real("temperature"), _real("kappa_w"), _real("e_pre")
head, missed, spread = _real("head"), _real("missed"), _real("spread")

_FIELDS = {**specs(Architecture), **specs(Sample), **specs(Norms)}


def _declared(symbol: Any, field: str, below: float = math.inf) -> Entry:
    """The symbol of a field of a setting, as it is declared there."""
    spec = _FIELDS[field]
    return Entry(symbol, spec.latex, spec.words.partition(";")[0], field, spec.typical, below=below)


ENTRIES: tuple[Entry, ...] = (
    _declared(C, "C"),
    Entry(K, "K", r"entrywise $\ell_1$ norm of every matrix", "", (1.0, 8.0)),
    Entry(B_w, "B_w", "norm of the read-out vector", "", (0.5, 4.0)),
    _declared(T, "seq_len"),
    _declared(m, "n_train"),
    _declared(depth, "depth"),
    _declared(d, "d"),
    _declared(heads, "heads"),
    _declared(gamma, "margin"),
    _declared(delta, "delta", below=1.0),
    Entry(eps, r"\varepsilon", "scale of a cover", "", (0.01, 0.5)),
    Entry(target, "t", "what the bound is to be at most", "", (0.01, 0.5)),
    Entry(s, "s", "number of relevant bits", "", (1, 4)),
    Entry(rank, "r_w", "rank of every matrix", "", (1, 4)),
    _declared(vocabulary, "vocabulary"),
    Entry(L_s, "L_s", "Lipschitz constant of the loss in the head's output", "", (0.5, 2.0)),
    _declared(B_X, "input_radius"),
    Entry(c, "c", "the constant a published theorem does not specify", "", (1.0, 100.0)),
    Entry(p, "p", "Schatten power", "", (0.2, 2.0), most=2.0),
    Entry(C_V, "C_V", "spectral norm of a head's value matrix", "", (0.5, 2.0)),
    Entry(K_V, "K_V", "$(2,1)$ norm of a head's value matrix", "", (2.0, 6.0)),
    Entry(K_QK, "K_{QK}", "$(2,1)$ norm of a head's score matrix", "", (0.5, 4.0)),
    Entry(A_s, "A_s", "log-count of the score class at scale 1: at most $A_s/e^2$ at scale $e$", "", (1.0, 50.0)),
    Entry(A_in, r"A_{\mathrm{in}}", "log-count of the feature class at scale 1", "", (1.0, 50.0)),
    Entry(B_in, r"B_{\mathrm{in}}", "largest norm of a feature", "", (0.5, 2.0)),
    Entry(L_out, r"L_{\mathrm{out}}", "Lipschitz constant of the output map", "", (0.5, 2.0)),
    Entry(c_n, r"c_0", r"Lipschitz constant of the normaliser from $\ell_\infty$ to $\ell_1$", "", (0.25, 2.0)),
    Entry(mu, r"\mu", r"largest $\ell_1$ mass of a row of attention weights", "", (0.5, 2.0)),
    Entry(S_p, "S_p", "sum of the $p$-th powers of the singular values of a matrix", "", (4.0, 20.0)),
    Entry(L, "L", "key-value pairs a query sees", "", (5000, 10**6)),
    Entry(rho, r"\rho", r"regularisation per pair, $\lambda/L$", "", (0.001, 1.0)),
    Entry(kappa, r"\kappa", "root of the largest $k(x, x)$ of the kernel", "", (0.5, 2.0)),
    Entry(M, "M", "largest norm of a value", "", (0.5, 4.0)),
    Entry(g, r"\|g\|", "norm of $g$ in $f^* = L_K^r g$, the conditional mean's source", "", (0.5, 4.0)),
    Entry(smoothness, "r", "smoothness of the conditional mean: $f^* = L_K^r g$", "", (0.6, 1.4), above=0.5, most=1.5),
    Entry(temperature, r"\tau", "temperature of softmax attention", "temperature", (0.5, 4.0)),
    Entry(kappa_w, r"\kappa_w", "condition number $|w M^+|$ of the pair of tasks", "", (0.5, 20.0)),
    Entry(e_pre, r"e_{\mathrm{pre}}", "mean squared error of the pretext task", "", (0.001, 0.5)),
    Entry(head, "|a|", "norm of the head $a$ on the pretext outputs", "", (0.5, 20.0)),
    Entry(missed, "|aM-w|", "what the head misses of the downstream direction", "", (0.001, 2.0)),
    Entry(spread, "s", r"root of the largest eigenvalue of $\mathbb E hh^\top$", "", (0.5, 2.0)),
)
"""All symbols that may be given values, in the order in which they are listed."""

BY_NAME: Mapping[str, Entry] = {entry.symbol.name: entry for entry in ENTRIES}

ALIASES: Mapping[str, str] = {
    "D": "depth",
    "H": "heads",
    "seq_len": "T",
    "n_train": "m",
    "margin": "gamma",
    "eps": "epsilon",
    "V": "vocabulary",
    "r_w": "rank",
    "tau": "temperature",
    "reg": "rho",
    "r": "smoothness",
    "input_radius": "B_X",
}
"""Other names under which a symbol may be given."""

LATEX: dict[sympy.Symbol, str] = {entry.symbol: entry.latex for entry in ENTRIES}


def meaning(symbol: sympy.Basic) -> str:
    """What a symbol stands for ("" for one that is not in the list)."""
    entry = BY_NAME.get(str(symbol))
    return entry.meaning if entry else ""


def symbol(name: str) -> sympy.Symbol:
    """The library's symbol of a name (T and seq_len are one), or a positive one of that name."""
    entry = BY_NAME.get(ALIASES.get(name, name))
    return sympy.Symbol(name, positive=True) if entry is None else entry.symbol


def plain(symbol: sympy.Basic) -> sympy.Symbol:
    """The symbol as SymPy code outside of the library writes it: positive, whether or not it is a whole number here."""
    return sympy.Symbol(str(symbol), positive=True)


def latex(name: str) -> str:
    """How papers print the symbol of a name."""
    entry = BY_NAME.get(ALIASES.get(name, name))
    return name if entry is None else entry.latex
