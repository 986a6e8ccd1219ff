"""A5 and A6: norms of a matrix from those that are given, and of products."""

from __future__ import annotations

from functools import reduce

from boundcalc.base.system import Number, NumberSystem
from boundcalc.layers.facts import Kind as Kind
from boundcalc.layers.facts import MatrixNorms as MatrixNorms
from boundcalc.layers.facts import Points as Points
from boundcalc.layers.facts import Target as Target
from boundcalc.setting import Budget


def fewest(sizes: list[int]) -> int:
    """The least of some sizes; symbolic ones are at least 1, so 0 or 1 is the least whatever they are.

    Of symbols that cannot be compared the first stands for the least: a rank is at most each of them.
    """
    numbers = [size for size in sizes if isinstance(size, int)]
    if numbers and min(numbers) <= 1:
        return min(numbers)
    try:
        return min(sizes)
    except TypeError:
        return sizes[0]


LEAST_BUDGET = 1e-300
"""Stands for a budget of 0: whatever holds for larger weights holds for none, and logarithms stay finite."""


def matrix_norms(ns: NumberSystem, budget: Budget, d: int, k: int, rank: int | None = None) -> MatrixNorms | None:
    """A5: the least norms that follow from a budget for a d x k matrix; None when nothing follows.

    |W|_op <= |W|_F <= |W|_21 <= sqrt(k) |W|_F, |W|_F <= sqrt(rank) |W|_op, |W|_21 <= |W|_11 <= sqrt(d) |W|_21,
    |W|_F^2 <= max_j |w_j| sum_j |w_j| <= |W|_op |W|_21; the nuclear norm is at most |W|_21 (columns have rank one),
    sqrt(rank) |W|_F, rank |W|_op, and what sum sigma^p leaves it.
    """
    limit = fewest([x for x in (d, k, rank, budget.rank) if x is not None]) or 1
    norms = {
        name: ns.number(value or LEAST_BUDGET)
        for name in ("op", "fro", "two_one", "two_one_t", "one_one")
        if (value := getattr(budget, name)) is not None
    }
    power = total = None
    if budget.schatten is not None:
        power, total = ns.number(budget.schatten[0]), ns.number(budget.schatten[1] or LEAST_BUDGET)
        from_spectrum = total ** (1 / power)
        norms["op"] = ns.minimum(norms["op"], from_spectrum) if "op" in norms else from_spectrum
    if not norms:
        return None
    fronts = [norms[name] for name in ("fro", "two_one", "two_one_t", "one_one") if name in norms]
    op = reduce(ns.minimum, [*fronts, *([norms["op"]] if "op" in norms else [])])
    fro = reduce(ns.minimum, [*fronts, ns.sqrt(ns.number(limit)) * op])
    if power is not None:
        fro = ns.minimum(fro, ns.sqrt(op ** (2 - power) * total))
    one_one = [norms["one_one"]] if "one_one" in norms else []
    products = [ns.sqrt(op * norms[name]) for name in ("two_one", "two_one_t", "one_one") if name in norms]
    fro = reduce(ns.minimum, products, fro)
    columns, rows = (
        reduce(ns.minimum, [*one_one, *([norms[name]] if name in norms else [])], ns.sqrt(ns.number(size)) * fro)
        for name, size in (("two_one", k), ("two_one_t", d))
    )
    entries = ns.minimum(ns.sqrt(ns.number(d)) * columns, ns.sqrt(ns.number(k)) * rows, *one_one)
    nuclear = ns.minimum(columns, rows, ns.sqrt(ns.number(limit)) * fro, limit * op)
    if budget.schatten is not None and total is not None and isinstance(budget.schatten[0], int | float):
        nuclear = ns.minimum(nuclear, nuclear_of(ns, budget.schatten[0], total, op, limit))
    return MatrixNorms(op, fro, columns, rows, entries, nuclear, limit)


def nuclear_of(ns: NumberSystem, p: float, total: Number, op: Number, rank: int) -> Number:
    """The sum of sigma from sum sigma^p = total: by sigma <= op for p <= 1, by the power mean for p >= 1."""
    power = ns.number(p)
    if p <= 1:
        return op ** (1 - power) * total
    return ns.number(rank) ** (1 - 1 / power) * total ** (1 / power)


def product(ns: NumberSystem, left: MatrixNorms, right: MatrixNorms) -> MatrixNorms:
    """Norms of AB. Columns of AB are A times those of B, its rows B times those of A (L6)."""
    return MatrixNorms(
        op=left.op * right.op,
        fro=ns.minimum(left.op * right.fro, left.fro * right.op),
        two_one=left.op * right.two_one,
        two_one_t=left.two_one_t * right.op,
        one_one=left.one_one * right.one_one,
        nuclear=ns.minimum(left.op * right.nuclear, left.nuclear * right.op, left.fro * right.fro),
        rank=min(left.rank, right.rank),
    )
