"""A6: norms of products, and of matrices with an offset below them, from those of their parts."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.base.intervals import upper_float
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Budget
from boundcalc.statements.targets import MatrixNorms


def transposed(norms: MatrixNorms) -> MatrixNorms:
    """The norms of W'."""
    return replace(norms, two_one=norms.two_one_t, two_one_t=norms.two_one)


def product(ns: NumberSystem, left: MatrixNorms, right: MatrixNorms) -> MatrixNorms:
    """A6: norms of AB. Columns of AB are A times those of B, its rows B times those of A (L6)."""
    fro = ns.minimum(left.op * right.fro, left.fro * right.op)
    return MatrixNorms(
        op=left.op * right.op,
        fro=fro,
        two_one=left.op * right.two_one,
        two_one_t=left.two_one_t * right.op,
        one_one=left.one_one * right.one_one,
        nuclear=ns.minimum(left.op * right.nuclear, left.nuclear * right.op, left.fro * right.fro),
        rank=min(left.rank, right.rank),
    )


def below(ns: NumberSystem, a: MatrixNorms, row: Number, width: int) -> MatrixNorms:
    """[A; c], a row of length `row` below `width` columns."""
    entries = ns.sqrt(ns.number(width)) * row
    return MatrixNorms(
        op=ns.sqrt(a.op**2 + row**2),
        fro=ns.sqrt(a.fro**2 + row**2),
        two_one=a.two_one + entries,
        two_one_t=a.two_one_t + row,
        one_one=a.one_one + entries,
        nuclear=a.nuclear + row,
        rank=a.rank + 1,
    )


def bordered(ns: NumberSystem, a: MatrixNorms, row: Number | None, width: int) -> MatrixNorms:
    """[A 0; c 1]; c = 0 where no row is given."""
    one = ns.number(1)
    inner = a if row is None else below(ns, a, row, width)
    return MatrixNorms(
        op=ns.maximum(a.op, one) if row is None else ns.sqrt(inner.op**2 + 1),
        fro=ns.sqrt(inner.fro**2 + 1),
        two_one=inner.two_one + 1,
        two_one_t=inner.two_one_t + 1,
        one_one=inner.one_one + 1,
        nuclear=inner.nuclear + 1,
        rank=a.rank + 1,
    )


def budget_of(norms: MatrixNorms) -> Budget:
    """The budget of norms in intervals, rounded up and in order."""
    op = upper_float(norms.op)
    fro = max(op, upper_float(norms.fro))
    two_one, two_one_t = (max(fro, upper_float(value)) for value in (norms.two_one, norms.two_one_t))
    nuclear = max(fro, upper_float(norms.nuclear))
    return Budget(op, fro, two_one, two_one_t, rank=norms.rank, schatten=(1.0, nuclear))
