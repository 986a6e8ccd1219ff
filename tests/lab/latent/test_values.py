"""X: every value a statement computes, in three number systems, against the same formula written out in 50 digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from boundcalc.lab.latent import formulas
from boundcalc.proof.second.numbers import MP, num
from tests.statements.inputs import ROUNDS, Rng, Value, disagreements, some, whole


def softmax_error(ns: Any, n: Any, ratio: Any, most: Any, log: Any) -> Any:
    """X4 at the tilt that is best as n grows."""
    second, spread, top = formulas.softmax_moments(ns, ratio)
    tilt = formulas.default_tilt(ns, n, spread, log)
    return most * formulas.self_normalised_error(ns, n, second, spread, top, log, tilt)


FORMULAS: dict[str, Callable[..., Any]] = {
    "X0": formulas.hilbert_bernstein,
    "X1": formulas.finite_mixture_distance,
    "X3k": formulas.cme_error_given_keys,
    "X4": softmax_error,
    "X6": formulas.transfer_error,
}


def of(name: str, *numbers: float) -> Value:
    """The value of a statement at these numbers, made numbers of the system."""
    return lambda ns: FORMULAS[name](ns, *(ns.number(x) for x in numbers))


def x0(rng: Rng) -> tuple[Value, Any]:
    variance, radius, log = some(rng, 3)
    n = whole(rng, 2, 500)
    v, b, ell = num(variance), num(radius), num(log)
    # the positive root t of t^2 - 2bt log/(3n) - 2 variance log/n = 0
    root = MP.polyroots([1, -2 * b * ell / (3 * n), -2 * v * ell / n], maxsteps=200, extraprec=200)
    return of("X0", variance, radius, log, n), max(root)


def x1(rng: Rng) -> tuple[Value, Any]:
    tokens, length = whole(rng, 2, 9), whole(rng, 30, 500)
    return of("X1", tokens, length), min(MP.mpf(1), MP.binomial(tokens, 2) / length)


def x3(rng: Rng) -> tuple[Value, Any]:
    reg, kappa, most, source, log = some(rng, 5)
    r = (0.75, 1.0, 1.25, 1.5)[whole(rng, 0, 3)]
    n = whole(rng, 5, 4000)
    rho, k, m, g, ell, rr = (num(x) for x in (reg, kappa, most, source, log, r))
    f = min(m / MP.sqrt(rho), MP.power(k, 2 * rr - 1) * g)
    b = k * m + k**2 * f + min(rho * f, k * m)
    mean = b * ell / (3 * n) + MP.sqrt((b * ell / (3 * n)) ** 2 + 2 * k**2 * m**2 * ell / n)
    a = rr - MP.mpf(1) / 2
    top = MP.mpf(1) if a == 1 else MP.power(a, a) * MP.power(1 - a, 1 - a)
    truth = min(mean / rho, m / MP.sqrt(rho) + f) + top * MP.power(rho, a) * g

    def value(ns: Any) -> Any:
        numbers = [ns.number(n), ns.number(reg), r, *(ns.number(x) for x in (kappa, most, source, log))]
        return formulas.cme_error(ns, *numbers)

    return value, truth


def x3k(rng: Rng) -> tuple[Value, Any]:
    alpha, noise, power, norm, log = some(rng, 5)
    truth = num(noise) * num(alpha) * MP.sqrt(2 * num(log)) + num(norm) * num(power)
    return of("X3k", alpha, noise, power, norm, log), truth


def x4(rng: Rng) -> tuple[Value, Any]:
    ratio = some(rng, 1, 1.0, 8.0)[0]
    most, log = some(rng, 2)
    n = whole(rng, 3000, 20000)
    r, ell = num(ratio), num(log)
    spread, second = r**2 / (2 * r - 1), (1 + r) ** 2 / (4 * r)
    tilt = MP.sqrt(2 * ell / (n * spread))
    b = 2 * tilt * r
    psi = 2 * (MP.exp(b) - 1 - b) / b**2
    roots = MP.polyroots(
        [tilt**2 * second / 2, tilt**2 * MP.sqrt(spread * second) - tilt, tilt**2 * spread * psi / 2 + ell / n],
        maxsteps=500,
        extraprec=300,
    )
    return of("X4", n, ratio, most, log), num(most) * min(MP.re(x) for x in roots)


def x6(rng: Rng) -> tuple[Value, Any]:
    head, error, missed, spread = some(rng, 4)
    a, e, d, s = (num(x) for x in (head, error, missed, spread))
    return of("X6", head, error, missed, spread), a**2 * e + 2 * a * MP.sqrt(e) * d * s + (d * s) ** 2


CHECKS: dict[str, Callable[[Rng], tuple[Value, Any]]] = {
    "X0": x0,
    "X1": x1,
    "X3": x3,
    "X3k": x3k,
    "X4": x4,
    "X6": x6,
}


@pytest.mark.parametrize("name", CHECKS)
def test_values_are_those_of_a_formula_written_out(name: str) -> None:
    rng = np.random.default_rng(list(CHECKS).index(name))
    tolerance = 1e-9 if name == "X4" else 1e-12  # e^b - 1 - b cancels in floats at small b; intervals are checked fully
    for _ in range(ROUNDS):
        value, truth = CHECKS[name](rng)
        assert disagreements(value, truth, tolerance) == []
    value, truth = CHECKS[name](rng)
    assert disagreements(value, truth * (1 + MP.mpf(10) ** -6)) != []
