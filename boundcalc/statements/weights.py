"""A5, A6: norms of a matrix from those that are given, of products, and of all weights of a setting."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.layers.facts import MatrixNorms
from boundcalc.layers.merged import is_product
from boundcalc.setting import Budget, Norms, Weight
from boundcalc.setting.norms import place_of


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


class Matrix(NamedTuple):
    """One matrix: the norms of W (radii, Lipschitz factors) and of what is covered, W - M (T7)."""

    whole: MatrixNorms
    covered: MatrixNorms


_SIZES = {
    **dict.fromkeys(("vector", "factor vector"), ("op", "fro", "two_one")),
    **dict.fromkeys(("table", "rows"), ("row", "op", "fro", "two_one")),
    "gain": ("sup",),
}
"""The limits that bound the size of a weight, by what it is."""


class Weights:
    """Looks budgets up by kind, block and head; equal budgets are completed once."""

    def __init__(self, ns: NumberSystem, norms: Norms) -> None:
        self.ns = ns
        self.norms = norms
        self._done: dict[tuple[int, int, int, int | None], Matrix] = {}
        self._read: set[str] = set()

    def budget(self, kind: str, block: int | None = None, head: int | None = None) -> Budget:
        """A budget that some layer reads."""
        place = self.norms.place(kind, block, head)
        if place is not None:
            self._read.add(place)
        return self.norms.find(kind, block, head)

    def check_all_read(self) -> None:
        """Refuses budgets that no layer of the network just walked through has read.

        A setting refuses them by what its layers say of themselves; this holds their rules to their word. Budgets of
        products are read where maps that meet are made one.
        """
        read = {(place_of(key)[:2], self.norms.budgets[key]) for key in self._read}  # one head stands for its equals
        for key, budget in self.norms.budgets.items():
            if (place_of(key)[:2], budget) not in read and not is_product(place_of(key)[0]):
                raise InvalidSetting(f"norms of {key}: no layer's rule reads it, so it would be ignored")

    def matrix(self, kind: str, block: int | None, head: int | None, d: int, k: int, rank: int | None = None) -> Matrix:
        """A d x k matrix of rank at most `rank`; W - M then has twice that rank."""
        budget = self.budget(kind, block, head)
        key = (id(budget), d, k, rank)  # budgets live as long as the norms do
        if key not in self._done:
            whole = self._complete(kind, budget, d, k, rank)
            covered = whole
            if budget.distance is not None:
                covered = self._complete(f"{kind}: distance", budget.distance, d, k, 2 * rank if rank else None)
            self._done[key] = Matrix(whole, covered)
        return self._done[key]

    def _complete(self, where: str, budget: Budget, d: int, k: int, rank: int | None) -> MatrixNorms:
        norms = matrix_norms(self.ns, budget, d, k, rank)
        if norms is None:
            raise InvalidSetting(f"the norm budget of {where} sets no norm: give at least one of op, F, 21, 11")
        return norms

    def scores(self, joint: Weight, head: int | None, rank: int | None) -> Matrix:
        """The score matrix of a head, from its own budget or from those of its factors."""
        if joint in joint.read(self.norms, head):
            return self.matrix(joint.kind, joint.block, head, joint.shape[0], joint.shape[1], rank)
        return self._product(joint, head)

    def _product(self, joint: Weight, head: int | None) -> Matrix:
        """W_QK from the budgets of W_Q and W_K.

        With a query bias the matrix is [W_Q; b_Q] W_K^T; where a key bias matters too, [W_Q; b_Q] [W_K; b_K]^T.
        """
        block, (rows, columns) = joint.block, joint.shape
        kinds = {factor.kind: factor for factor in joint.factors}
        zero = self.ns.number(0)
        q = self.matrix("W_Q", block, head, *kinds["W_Q"].shape).whole
        k = self.matrix("W_K", block, head, *kinds["W_K"].shape).whole
        b_q, b_k = (self.read(kinds[kind], head)[0] if kind in kinds else zero for kind in ("b_Q", "b_K"))
        q_op, q_fro = self.ns.sqrt(q.op**2 + b_q**2), self.ns.sqrt(q.fro**2 + b_q**2)
        k_op, k_fro = self.ns.sqrt(k.op**2 + b_k**2), self.ns.sqrt(k.fro**2 + b_k**2)
        fro = self.ns.minimum(q_op * k_fro, q_fro * k_op)
        product = MatrixNorms(
            op=q_op * k_op,
            fro=fro,
            two_one=self.ns.minimum(q_op * (k.two_one_t + b_k), self.ns.sqrt(self.ns.number(columns)) * fro),
            two_one_t=self.ns.minimum(k_op * (q.two_one_t + b_q), self.ns.sqrt(self.ns.number(rows)) * fro),
            one_one=self.ns.sqrt(self.ns.number(rows * columns)) * fro,
            nuclear=q_fro * k_fro,
            rank=fewest([kinds["W_Q"].shape[1], rows, columns]),
        )
        return Matrix(product, product)

    def read(self, weight: Weight, head: int | None = None) -> tuple[Number, MatrixNorms]:
        """The size of a weight, and the norms of what is covered of it, its distance from a reference (T7).

        A size is |W|_op of a matrix, the length of an offset, the largest gain, the longest row of a table.
        """
        head = head if weight.heads else None
        if weight.role == "matrix":
            matrix = self.matrix(weight.kind, weight.block, head, *weight.shape)
            return matrix.whole.op, matrix.covered
        if weight.role in ("scores", "values"):
            return self._table(weight)
        budget, names = self.budget(weight.kind, weight.block, head), _SIZES[weight.role]
        sizes: list[Number] = []
        for part in (budget, budget.distance or budget):
            limits = [value for name in names if (value := getattr(part, name)) is not None]
            if not limits:
                raise InvalidSetting(f'the norm budget of {weight.kind} needs "{names[0]}"')
            sizes.append(reduce(self.ns.minimum, [self.ns.number(limit or LEAST_BUDGET) for limit in limits]))
        rank = weight.shape[1] if "row" in names else 1
        return sizes[0], MatrixNorms.all(sizes[1], rank)

    def _table(self, weight: Weight) -> tuple[Number, MatrixNorms]:
        """Of what heads look up the largest entry or values, and the norms of the matrix; each from others if unset."""
        budget, ns = self.budget(weight.kind), self.ns
        d, k = weight.shape
        limit = budget.sup if weight.role == "scores" else budget.heads
        fro = budget.fro
        if limit is None and fro is None:
            raise InvalidSetting(
                f'the norm budget of {weight.kind} needs "{"sup" if weight.role == "scores" else "heads"}"'
            )
        most = ns.number((fro if limit is None else limit) or LEAST_BUDGET)
        whole = ns.sqrt(ns.number(d * k if weight.role == "scores" else d)) * most
        if fro is not None:
            whole = ns.minimum(whole, ns.number(fro or LEAST_BUDGET))
        rank = min(d, k)
        nuclear = ns.sqrt(ns.number(rank)) * whole
        if budget.nuclear is not None:
            nuclear = ns.minimum(nuclear, ns.number(budget.nuclear or LEAST_BUDGET))
        columns, rows = (ns.sqrt(ns.number(side)) * whole for side in (k, d))
        return most, MatrixNorms(whole, whole, columns, rows, ns.sqrt(ns.number(d)) * columns, nuclear, rank)
