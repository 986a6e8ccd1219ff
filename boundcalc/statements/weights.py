"""The norm budgets of a setting, completed (A5) and looked up in one number system."""

from __future__ import annotations

from dataclasses import dataclass

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.setting import Budget, Norms
from boundcalc.statements.targets import LEAST_BUDGET, MatrixNorms, matrix_norms


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix: the norms of W (radii, Lipschitz factors) and of what is covered, W - M (T7)."""

    whole: MatrixNorms
    covered: MatrixNorms


class Weights:
    """Looks budgets up by kind, block and head; equal budgets are completed once."""

    def __init__(self, ns: NumberSystem, norms: Norms) -> None:
        self.ns = ns
        self.norms = norms
        self._done: dict[tuple[int, int, int, int | None], Matrix] = {}

    def matrix(self, kind: str, block: int | None, head: int | None, d: int, k: int, rank: int | None = None) -> Matrix:
        """A d x k matrix of rank at most `rank`; W - M then has twice that rank."""
        budget = self.norms.find(kind, block, head)
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

    def scores(
        self, block: int | None, head: int | None, d: int, d_head: int | None, *, bias: bool, key_bias: bool
    ) -> Matrix:
        """W_QK, from its own budget or from those of W_Q and W_K.

        With a query bias the matrix is [W_Q; b_Q] W_K^T; where a key bias matters too, [W_Q; b_Q] [W_K; b_K]^T.
        """
        rows, columns = (d + 1 if bias else d), (d + 1 if key_bias else d)
        if self.norms.has("W_QK") or not self.norms.has("W_Q") or d_head is None:
            return self.matrix("W_QK", block, head, rows, columns, d_head)
        q = self.matrix("W_Q", block, head, d, d_head).whole
        k = self.matrix("W_K", block, head, d, d_head).whole
        b_q = self.vector("b_Q", block, head)[0] if bias else self.ns.number(0)
        b_k = self.vector("b_K", block, head)[0] if key_bias else self.ns.number(0)
        q_op, q_fro = self.ns.sqrt(q.op**2 + b_q**2), self.ns.sqrt(q.fro**2 + b_q**2)
        k_op, k_fro = self.ns.sqrt(k.op**2 + b_k**2), self.ns.sqrt(k.fro**2 + b_k**2)
        fro = self.ns.minimum(q_op * k_fro, q_fro * k_op)
        product = MatrixNorms(
            op=q_op * k_op,
            fro=fro,
            two_one=self.ns.minimum(q_op * (k.two_one_t + b_k), self.ns.sqrt(self.ns.number(columns)) * fro),
            two_one_t=self.ns.minimum(k_op * (q.two_one_t + b_q), self.ns.sqrt(self.ns.number(rows)) * fro),
            one_one=self.ns.sqrt(self.ns.number(rows * columns)) * fro,
            rank=min(d_head, rows, columns),
        )
        return Matrix(product, product)

    def vector(self, kind: str, block: int | None, head: int | None = None) -> tuple[Number, Number]:
        """l2 norm of an offset, and of its distance from the reference."""
        return self._size(kind, self.norms.find(kind, block, head), ("op", "fro", "two_one"), "op")

    def gain(self, kind: str, block: int | None) -> tuple[Number, Number]:
        """Sup norm of a gain, and of its distance from the reference."""
        return self._size(kind, self.norms.find(kind, block), ("sup",), "sup")

    def row(self, kind: str) -> tuple[Number, Number]:
        """Largest row norm of a table, and of its distance from the reference."""
        return self._size(kind, self.norms.find(kind), ("row", "op", "fro", "two_one"), "row")

    def _size(self, kind: str, budget: Budget, names: tuple[str, ...], ask: str) -> tuple[Number, Number]:
        sizes: list[Number] = []
        for part in (budget, budget.distance or budget):
            given = [value for name in names if (value := getattr(part, name)) is not None]
            if not given:
                raise InvalidSetting(f'the norm budget of {kind} needs "{ask}"')
            sizes.append(self.ns.number(min(given) or LEAST_BUDGET))
        return sizes[0], sizes[1]
