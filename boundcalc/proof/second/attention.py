"""L1, L2, L7, L13, S1-S5 and T8 for one head in 50 digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boundcalc.proof.second.covers import Sizes, View, single
from boundcalc.proof.second.numbers import MP, Real, demand, num, unknown
from boundcalc.setting import Attention

if TYPE_CHECKING:
    from boundcalc.proof.second.network import Walk


class Head:
    """L7, S1-S5, T8 for one head: constants, radii and the ways its maps are covered."""

    def __init__(self, walk: Walk, layer: Attention, rows: int, head: int | None) -> None:
        self.head = head
        b, block, name = walk.radius, layer.block, layer.normaliser.name
        self.softmax = name == "softmax"  # rows of weights sum to 1
        self.keys_alone = self.softmax and layer.cap is None  # what a query adds to all its scores changes nothing
        zero = num(0)
        given = layer.normaliser.temperature
        tau = num(1) if given is None else num(given)
        if given is None and layer.qk == "split":
            tau = MP.sqrt(layer.d_head)
        value, value_covered = walk.matrix("W_V", block, head, layer.d, layer.out)
        offset, self.offset_apart = walk.offset("b_V", block, head) if layer.v_bias else (zero, zero)
        self.inside = b * value.op if self.softmax else b * value.op + offset
        self.value_radius = b * value.op + offset
        if layer.qk == "split":
            biases = [walk.offset(kind, block, head) if layer.qk_bias else (zero, zero) for kind in ("b_Q", "b_K")]
            q, q_covered = walk.matrix("W_Q", block, head, layer.d, layer.d_head or 1)
            k, k_covered = walk.matrix("W_K", block, head, layer.d, layer.d_head or 1)
            q_radius, k_radius = b * q.op + biases[0][0], b * k.op + biases[1][0]
            q_unit, k_unit, gains = num(1), num(1), []
            if layer.qk_norm != "none":
                demand(self.softmax, "queries and keys are normalised under softmax only")
                q_radius, q_unit, q_gain = self._unit(walk, layer, "norm_Q.gain", layer.heads, q_radius)
                k_radius, k_unit, k_gain = self._unit(walk, layer, "norm_K.gain", layer.groups, k_radius)
                gains = [("norm_Q.gain", k_radius, [q_gain]), ("norm_K.gain", q_radius, [k_gain])]
            c, self.mass = self._constants(walk, layer, tau, q_radius * k_radius)
            self.lipschitz = value.op * self.mass + c * self.inside * (
                q_unit * q.op * k_radius + q_radius * k.op * k_unit
            )
            self.scores = [
                ("W_Q", k_radius * q_unit, [View("map", b, rows, q_covered)]),
                ("W_K", q_radius * k_unit, [View("map", b, walk.seq_len, k_covered)]),
            ]
            if layer.qk_bias:
                self.scores.append(("b_Q", k_radius * q_unit, [single("vector", layer.d_head or 1, biases[0][1])]))
                self.scores.append(("b_K", q_radius * k_unit, [single("vector", layer.d_head or 1, biases[1][1])]))
            self.scores += gains
        elif layer.qk == "fixed":
            q, q_covered = walk.matrix("q", block, head, layer.d, 1)
            c, self.mass = self._constants(walk, layer, tau, b * q.op)
            exact = layer.cap is None and (self.softmax or (name == "softmax1" and not layer.v_bias))
            self.lipschitz = value.op * self.mass + c * self.inside * q.op
            if exact and not walk.published:
                self.lipschitz = value.op * MP.sqrt(1 + (b * q.op / tau) ** 2)
            self.scores = [("q", num(1), [View("map", b, walk.seq_len, q_covered)])]
        else:
            wide = MP.sqrt(b**2 + 1) if layer.qk_bias else b
            keys = b if self.keys_alone else wide
            w, covered = self._joint(walk, layer, head)
            c, self.mass = self._constants(walk, layer, tau, wide * keys * w.op)
            kappa = b**2 * w.op / tau
            if walk.published:
                steep = 2 * c if name == "custom" else 4 / tau
                self.lipschitz = value.op * self.mass + steep * self.inside * wide * w.op
            elif layer.cap is None and (
                self.softmax or (name == "softmax1" and not layer.qk_bias and not layer.v_bias)
            ):
                self.lipschitz = value.op * (kappa + MP.sqrt(1 + (b * wide * w.op / tau) ** 2))
            else:
                self.lipschitz = value.op * self.mass + c * self.inside * (keys + wide) * w.op
            ways = (("score", rows * walk.seq_len), ("query", rows), ("key", walk.seq_len))
            views = [View(kind, wide * keys, points, covered) for kind, points in ways]
            self.scores = [("W_QK", num(1), views)]
        self.score_error = c * self.inside
        pooled = 1 if layer.qk == "fixed" else rows
        self.value = View("map", self.mass * b, pooled * (layer.heads // layer.groups), value_covered)

    @staticmethod
    def _unit(walk: Walk, layer: Attention, kind: str, copies: int, length: Real) -> tuple[Real, Real, View]:
        """L13: the length of a normalised row, its error per error of the row, and the cover of its gain."""
        heads = copies if layer.qk_norm == "width" else 1
        size, e = layer.d_head or 1, num(layer.qk_eps or 0)
        demand(e > 0, "normalised queries and keys need an epsilon")
        largest, apart = walk.vector(("sup",), kind, layer.block)
        whole = length * MP.sqrt(heads)  # of the rows of all heads that are normalised together
        reach = largest * whole / MP.sqrt(whole**2 / (size * heads) + e)
        return reach, largest / MP.sqrt(e), single("gain", size * heads, apart, MP.sqrt(size * heads))

    @staticmethod
    def _constants(walk: Walk, layer: Attention, tau: Real, largest: Real) -> tuple[Real, Real]:
        """L1, L2."""
        normaliser = layer.normaliser
        if normaliser.name in ("softmax", "softmax1"):
            return (2 if walk.published else 1) / tau, num(1)
        if normaliser.name == "sigmoid":
            return 1 / (4 * tau), num(1)
        if normaliser.name == "linear":
            return 1 / tau, largest / tau
        if normaliser.name != "custom":
            raise unknown("normaliser", normaliser.name)
        return num(normaliser.c) / tau, num(normaliser.mu)

    def _joint(self, walk: Walk, layer: Attention, head: int | None) -> tuple[Sizes, Sizes]:
        """W_QK by its own budget, or the product [W_Q; b_Q] [W_K; b_K]^T by those of its factors (L6)."""
        rows = layer.d + 1 if layer.qk_bias else layer.d
        columns = layer.d if self.keys_alone else rows
        factors = ["W_Q", "W_K", *(["b_Q"] if layer.qk_bias else [])]
        factors += ["b_K"] if layer.qk_bias and not self.keys_alone else []
        if layer.d_head is None or all(walk.budget(kind, layer.block, head) is None for kind in factors):
            return walk.matrix("W_QK", layer.block, head, rows, columns, layer.d_head)
        q = walk.matrix("W_Q", layer.block, head, layer.d, layer.d_head)[0]
        k = walk.matrix("W_K", layer.block, head, layer.d, layer.d_head)[0]
        b_q = walk.offset("b_Q", layer.block, head)[0] if layer.qk_bias else num(0)
        b_k = walk.offset("b_K", layer.block, head)[0] if layer.qk_bias and not self.keys_alone else num(0)
        q_op, q_fro = MP.sqrt(q.op**2 + b_q**2), MP.sqrt(q.fro**2 + b_q**2)
        k_op, k_fro = MP.sqrt(k.op**2 + b_k**2), MP.sqrt(k.fro**2 + b_k**2)
        fro = min(q_op * k_fro, q_fro * k_op)
        product = Sizes(
            rows,
            columns,
            q_op * k_op,
            fro,
            min(q_op * (k.two_one_t + b_k), MP.sqrt(columns) * fro),
            min(k_op * (q.two_one_t + b_q), MP.sqrt(rows) * fro),
            MP.sqrt(rows * columns) * fro,
            q_fro * k_fro,
            min(layer.d_head, rows, columns),
        )
        return product, product
