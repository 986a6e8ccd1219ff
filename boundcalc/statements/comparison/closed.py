"""K: the gap by Gaussian comparison in elementary functions, nothing tuned, free of T and of the width."""

from __future__ import annotations

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.statements.comparison.network import Network, sizes_of

_LOWEST_QUARTER = 1.2711
"""Below 4 phi(t), Phi(t) = 1/4: minus the mean of a Gaussian that is in its lowest quarter."""
LEFT = 0.51
"""Over m: what the mean of the m lowest of 4m Gaussians falls short of it, at most."""
_NEXT_TO_NOTHING = 1e-40
"""Stands for parts that are 0 or smaller still: whatever holds for larger ones holds for them."""


def hoelder(ns: NumberSystem, *parts: Number) -> Number:
    """(a^(2/3) + b^(2/3) + ...)^(3/2): the smallest sum of a/sqrt(p), b/sqrt(q), ... with p + q + ... = 1."""
    power, least = ns.number(2) / 3, ns.number(_NEXT_TO_NOTHING)
    total = ns.number(0)
    for part in parts:
        total = total + (least if bool(part <= least) else part) ** power
    return total ** (ns.number(3) / 2)


def excess(ns: NumberSystem, x: Number) -> Number:
    """At least e^x - 1 - x, for x >= 0; without cancellation where x is small."""
    if bool(x < 1 / ns.number(1024)):
        return x**2 / 2 * ns.exp(x)
    return ns.expm1(x) - x


def hyperbolic(ns: NumberSystem, x: Number) -> tuple[Number, Number]:
    """Cosh x and sinh x."""
    up = ns.exp(x)
    return (up + 1 / up) / 2, (ns.expm1(x) - ns.expm1(-x)) / 2


def kappa(ns: NumberSystem, r: Number) -> Number:
    """The largest |tau (phi - mean)| in L2, of weights within a factor e^(2r) and phi in an interval of length 1."""
    cosh, sinh = hyperbolic(ns, r)
    theta = 2 * sinh / (cosh + ns.sqrt(cosh**2 + 8 * sinh**2))
    return ns.sqrt(1 - theta**2) * (cosh + theta * sinh) / 2


def mean_of_signs(ns: NumberSystem) -> Number:
    """Beta = E|g| = sqrt(2/pi)."""
    return ns.sqrt(2 / ns.pi)


def expected_gap(ns: NumberSystem, complexity: Number, steep: Number, m: Number) -> Number:
    """Above E sup (P - P_m) loss, for losses in [0, 1] that are `steep`-Lipschitz in outputs of so large a complexity.

    Three ghosts an example, and Gaussians for the choice among them.
    """
    return 2 * steep * complexity / _root_of_samples(ns, m)


def of_outputs(ns: NumberSystem, network: Network, scale: Number, gaussian: Number) -> Number:
    """The complexity of outputs, from G of the last block."""
    neurons = gaussian + mean_of_signs(ns) / 2
    outputs = scale * neurons
    if network.acts:
        outputs = hoelder(ns, outputs, _lengths(ns, network, gaussian, neurons))
    return network.readout * outputs


def _lengths(ns: NumberSystem, network: Network, gaussian: Number, neurons: Number) -> Number:
    """Complexity of half the squared lengths that the two projections of a network of one block divide by."""
    block, radius = network.blocks[0], network.radius
    before, values, total = radius * block.values_op, radius * block.values_fro, ns.number(0)
    if not bool(before <= 1):
        total = total + values**2 * gaussian
    if not bool(block.hidden_op * ns.minimum(ns.number(1), before) <= 1):
        squares = block.hidden_fro**2 * before * values * neurons
        hull = block.hidden_op * ns.minimum(
            block.hidden_op * (radius * block.values_columns) ** 2, block.hidden_fro * values**2
        )
        products = (1 + ns.sqrt(ns.number(2))) * gaussian + mean_of_signs(ns)
        total = total + ns.minimum(squares, hull * products / 2)
    return total


def _root_of_samples(ns: NumberSystem, m: Number) -> Number:
    """Sqrt(m) times the mean that the m lowest of 4m Gaussians are below 0 by, at least."""
    return ns.number(_LOWEST_QUARTER) * (1 - LEFT / m) * ns.sqrt(m)


def score_complexity(ns: NumberSystem, gaussian: Number) -> Number:
    """Psi: complexity of centred scores in the hull of products of two neurons."""
    half, beta = ns.number(1) / 2, mean_of_signs(ns)
    plain = half + ns.sqrt(ns.number(2))
    mixed = (plain + hoelder(ns, half, ns.number(1))) / 2
    return ns.minimum(plain * gaussian + beta / 2, mixed * gaussian + beta / 4)


def closed(ns: NumberSystem, network: Network) -> Number:
    """K1: the complexity of outputs."""
    sizes = sizes_of(ns, network, columns=False)
    beta = mean_of_signs(ns)
    fro, most = network.blocks[0].scores_fro * network.radius**2, sizes[0].half_range
    _, sinh = hyperbolic(ns, most)
    first = hoelder(ns, sinh, 2 * fro * kappa(ns, most))
    second = fro + hoelder(ns, excess(ns, most), fro * ns.expm1(most))
    gaussian = ns.sqrt(1 + ns.minimum(first, second) ** 2)
    for size in sizes[1:-1]:
        cosh, sinh = hyperbolic(ns, size.half_range)
        scores = kappa(ns, size.half_range) * size.hull * score_complexity(ns, gaussian)
        gaussian = ns.minimum(
            hoelder(ns, cosh * (gaussian + beta / 2), scores),
            gaussian + beta / 2 + hoelder(ns, sinh * (gaussian + beta / 4), scores),
        )
    return of_outputs(ns, network, sizes[-1].scale, gaussian)
