"""Posteriors as formulas, derived and checked by sympy. Importing this module imports sympy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import Expr

from boundcalc.base.errors import InvalidSetting
from boundcalc.setting import validate

z, y = sympy.Symbol("z", real=True), sympy.Symbol("y", real=True)
a, b = sympy.symbols("a b", positive=True)
L = sympy.Symbol("L", integer=True, positive=True)
s = sympy.Symbol("s", nonnegative=True)
noise, prior = sympy.Symbol("sigma", positive=True), sympy.Symbol("t", positive=True)


@dataclass(frozen=True)
class SymbolicModel:
    """A model's formulas.

    Attributes:
        name: the model.
        latent: the symbols of the latent variable.
        log_prior: up to a constant.
        log_likelihood: of the tokens, through a sufficient statistic.
        log_posterior: with the parameters claimed, up to a constant.
        parameters: of the posterior, by name.
        predictive: of one more token, by name.
        statistic: what the symbols of the data stand for.
    """

    name: str
    latent: tuple[sympy.Symbol, ...]
    log_prior: Any
    log_likelihood: Any
    log_posterior: Any
    parameters: Mapping[str, Any]
    predictive: Mapping[str, Any]
    statistic: str

    def residual(self) -> list[Expr]:
        """Derivatives of log prior + log likelihood - log posterior in z: all 0 where the posterior is right."""
        gap = self.log_prior + self.log_likelihood - self.log_posterior
        return [_ratio(sympy.diff(gap, symbol)) for symbol in self.latent]

    def latex(self) -> str:
        """The parameters and the predictive law, as LaTeX lines of an align environment."""
        rows = [*self.parameters.items(), *self.predictive.items()]
        return " \\\\\n".join(f"{_printed(name)} &= {sympy.latex(value)}" for name, value in rows)


_NAMES = {
    "mean": r"\mathbb E[z\mid X]",
    "variance": r"\mathrm{Var}(z\mid X)",
    "probability": r"\Pr(y=1\mid X)",
    "predictive mean": r"\mathbb E[y\mid X]",
    "predictive variance": r"\mathrm{Var}(y\mid X)",
}


def _ratio(x: Any) -> Any:
    """A rational expression over one denominator, without common factors; 0 where it is 0.

    Not `simplify` or `factor`: their multivariate factorisation now and then does not come to an end.
    """
    top, bottom = sympy.fraction(sympy.together(x))
    top = sympy.expand(top)
    return sympy.S.Zero if top == 0 else sympy.cancel(top / bottom)


def _printed(name: str) -> str:
    """A parameter's name as LaTeX."""
    for plain, latex in (
        ("alpha", r"\alpha"),
        ("E[", r"\mathbb E["),
        ("Pr(", r"\Pr("),
        ("]", r"\mid X]"),
        (")", r"\mid X)"),
    ):
        name = name if name in _NAMES else name.replace(plain, latex)
    return _NAMES.get(name, name)


def beta_bernoulli() -> SymbolicModel:
    """Beta(a, b) prior, s ones among L bits."""
    after_a, after_b = a + s, b + L - s
    return SymbolicModel(
        "beta-bernoulli",
        (z,),
        (a - 1) * sympy.log(z) + (b - 1) * sympy.log(1 - z),
        s * sympy.log(z) + (L - s) * sympy.log(1 - z),
        (after_a - 1) * sympy.log(z) + (after_b - 1) * sympy.log(1 - z),
        {
            "a'": after_a,
            "b'": after_b,
            "mean": after_a / (a + b + L),
            "variance": after_a * after_b / ((a + b + L) ** 2 * (a + b + L + 1)),
        },
        {"probability": after_a / (a + b + L)},
        "s = number of ones among L bits",
    )


def dirichlet_categorical(values: int = 3) -> SymbolicModel:
    """Dirichlet(alpha_1..alpha_V) prior, n_v tokens equal to v; the last coordinate of z is what the others leave."""
    validate.size("values", values, least=2)
    alpha = sympy.symbols(f"alpha_1:{values + 1}", positive=True)
    counts = sympy.symbols(f"n_1:{values + 1}", nonnegative=True)
    latent = sympy.symbols(f"z_1:{values}", positive=True)
    points = [*latent, 1 - sum(latent)]
    logs = [sympy.log(point) for point in points]
    total = sum(alpha) + sum(counts)
    return SymbolicModel(
        "dirichlet-categorical",
        tuple(latent),
        sum((x - 1) * log for x, log in zip(alpha, logs, strict=True)),
        sum(n * log for n, log in zip(counts, logs, strict=True)),
        sum((x + n - 1) * log for x, n, log in zip(alpha, counts, logs, strict=True)),
        {f"alpha_{i + 1}'": x + n for i, (x, n) in enumerate(zip(alpha, counts, strict=True))},
        {f"Pr(y={i + 1})": (x + n) / total for i, (x, n) in enumerate(zip(alpha, counts, strict=True))},
        "n_v = number of tokens equal to v",
    )


def gaussian_mean() -> SymbolicModel:
    """N(0, t^2) prior, noise sigma^2, s = sum of L tokens."""
    total = sympy.Symbol("s", real=True)
    precision = 1 / prior**2 + L / noise**2
    mean = _ratio(total / noise**2 / precision)
    variance = _ratio(1 / precision)
    return SymbolicModel(
        "gaussian-mean",
        (z,),
        -(z**2) / (2 * prior**2),
        (2 * z * total - L * z**2) / (2 * noise**2),
        -((z - mean) ** 2) / (2 * variance),
        {"mean": mean, "variance": variance},
        {"predictive mean": mean, "predictive variance": _ratio(variance + noise**2)},
        "s = sum of L tokens",
    )


def gaussian_linear(features: int = 2) -> SymbolicModel:
    """Values <z, phi(k)> + noise with so many features, through G = Phi^T Phi and c = Phi^T v."""
    if not 1 <= validate.size("features", features) <= 4:
        raise InvalidSetting(f"features must be at most 4 in symbols (the inverse is written out), got {features}")
    gram = sympy.Matrix(features, features, lambda i, j: sympy.Symbol(f"G_{min(i, j) + 1}{max(i, j) + 1}", real=True))
    cross = sympy.Matrix(features, 1, lambda i, _: sympy.Symbol(f"c_{i + 1}", real=True))
    query = sympy.Matrix(features, 1, lambda i, _: sympy.Symbol(f"phi_{i + 1}", real=True))
    latent = sympy.symbols(f"z_1:{features + 1}", real=True)
    vector = sympy.Matrix(latent)
    lam = noise**2 / prior**2
    precision = gram + lam * sympy.eye(features)
    inverse = precision.adjugate() / precision.det(method="berkowitz")
    mean = inverse * cross
    spread = (query.T * inverse * query)[0]
    centred = vector - mean
    return SymbolicModel(
        "gaussian-linear",
        tuple(latent),
        -(vector.T * vector)[0] / (2 * prior**2),
        (2 * (vector.T * cross)[0] - (vector.T * gram * vector)[0]) / (2 * noise**2),
        -(centred.T * precision * centred)[0] / (2 * noise**2),
        {f"E[z_{i + 1}]": _ratio(mean[i]) for i in range(features)},
        {
            "predictive mean": _ratio((query.T * mean)[0]),
            "predictive variance": _ratio(noise**2 + noise**2 * spread),
        },
        "G = Phi^T Phi, c = Phi^T v, phi = phi(q)",
    )


def mixture(components: int = 2) -> SymbolicModel:
    """Finitely many z: weights times likelihoods l_k, normalised (nothing to differentiate)."""
    validate.size("components", components, least=2)
    weights = sympy.symbols(f"pi_1:{components + 1}", positive=True)
    likelihoods = sympy.symbols(f"l_1:{components + 1}", positive=True)
    laws = sympy.symbols(f"q_1:{components + 1}", positive=True)
    total = sum(w * x for w, x in zip(weights, likelihoods, strict=True))
    after = [w * x / total for w, x in zip(weights, likelihoods, strict=True)]
    return SymbolicModel(
        "categorical-mixture",
        (),
        sympy.S.Zero,
        sympy.S.Zero,
        sympy.S.Zero,
        {f"Pr(z={k + 1})": w for k, w in enumerate(after)},
        {"probability": sum(w * q for w, q in zip(after, laws, strict=True))},
        "l_k = likelihood of the tokens under component k, q_k = its probability of the next one",
    )


SYMBOLIC = {
    "beta-bernoulli": beta_bernoulli,
    "dirichlet-categorical": dirichlet_categorical,
    "gaussian-mean": gaussian_mean,
    "gaussian-linear": gaussian_linear,
    "categorical-mixture": mixture,
    "gaussian-mixture": mixture,
}
"""Formulas by the names of `models.MODELS`."""
