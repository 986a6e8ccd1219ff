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
    |W|_F^2 <= max_j |w_j| sum_j |w_j| <= |W|_op |W|_21; the nuclear norm is at least |W|_F, with |W|_F^2 at most it
    times |W|_op, and at most |W|_21 (columns have rank one), sqrt(rank) |W|_F and rank |W|_op.
    """
    limit = fewest([x for x in (d, k, rank, budget.rank) if x is not None]) or 1
    names = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")
    limits = {name: value for name in names if (value := getattr(budget, name)) is not None}
    norms = {name: ns.number(value or LEAST_BUDGET) for name, value in limits.items()}
    if not norms:
        return None
    root = ns.sqrt(ns.number(limit))

    def least(*sizes: Number, of: tuple[str, ...] = ()) -> Number:
        return reduce(ns.minimum, [*sizes, *(norms[name] for name in of if name in norms)])

    op = least(of=(*names[1:], "op"))  # last: of symbols that cannot be compared a formula takes the last
    fro = least(root * op, *(ns.sqrt(op * norms[name]) for name in names[2:] if name in norms), of=names[1:])
    columns = least(ns.sqrt(ns.number(k)) * fro, of=("two_one", "one_one"))
    rows = least(ns.sqrt(ns.number(d)) * fro, of=("two_one_t", "one_one"))
    entries = least(ns.sqrt(ns.number(d)) * columns, ns.sqrt(ns.number(k)) * rows, of=("one_one",))
    nuclear = least(columns, rows, root * fro, limit * op, of=("nuclear",))
    return MatrixNorms(op, fro, columns, rows, entries, nuclear, limit)


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
