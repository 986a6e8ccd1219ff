"""L1, L2, L7, L8, L11-L14, S1-S5 and T8 for heads in 50 digits."""

from collections.abc import Sequence

from ._covers import Sizes, View, single
from ._layers import Layer
from ._numbers import MP, Real, demand, num
from ._walk import Walk


def attention(walk: Walk, layer: Layer, rows: int) -> None:
    """L7, L8."""
    alike = _alike(walk, layer)
    heads = [_Head(walk, layer, rows, head) for head in alike]
    numbers = list(alike.values())
    shared = [-(-number * layer.groups // layer.heads) for number in numbers]

    def together(values: Sequence[Real]) -> Real:
        if layer.combine == "concat":
            return MP.sqrt(sum(n * value**2 for n, value in zip(numbers, values, strict=True)))
        return sum((n * value for n, value in zip(numbers, values, strict=True)), start=num(0))

    block, steep = layer.block, together([head.score_error for head in heads])
    error = together([head.lipschitz for head in heads]) * walk.error
    wrong = together([2 * head.mass * head.inside for head in heads])
    for i, (kind, _, _) in enumerate(heads[0].scores):
        into = together([head.score_error * head.scores[i][1] for head in heads])
        bends = kind == "q" and layer.normaliser.name in ("softmax", "softmax1") and not walk.published  # S5
        maps = [(n, head.scores[i][2]) for n, head in zip(numbers, heads, strict=True)]
        if kind in ("W_K", "b_K"):
            maps = [(n, views) for n, (_, views) in zip(shared, maps, strict=True)]
        if kind.endswith(".gain"):
            maps = [(1, maps[0][1])]  # one for all heads
        error += walk.piece(kind, block, maps, into, wrong, bends)
    if layer.offsets == "learned":  # L14
        entries = single("gain", layer.buckets * layer.heads, walk.vector(("sup",), "score_offsets", block)[1])
        error += walk.piece("score_offsets", block, [(1, [entries])], steep, wrong)
    values = [(n, [head.value]) for n, head in zip(shared, heads, strict=True)]
    error += walk.piece("W_V", block, values, together([num(1) for _ in heads]))
    if layer.v_bias:
        moved = [(n, [single("vector", layer.out, head.apart)]) for n, head in zip(shared, heads, strict=True)]
        error += walk.piece("b_V", block, moved, together([head.mass for head in heads]))
    walk.error = error
    walk.radius = together([head.mass * head.value_radius for head in heads])


def _alike(walk: Walk, layer: Layer) -> dict[int | None, int]:
    """One head for each set of heads with the same budgets, in the order of certificates, and how many they are."""
    if not walk.norms.headed:
        return {None: layer.heads}
    kinds = ("W_QK", "W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V", "q")
    sets: dict[str, list[int]] = {}
    for head in range(layer.heads):
        sets.setdefault(repr([walk.budget(kind, layer.block, head) for kind in kinds]), []).append(head)
    demand(layer.groups == layer.heads or len(sets) == 1, "budgets per head with grouped queries")
    demand(layer.qk_norm != "width" or len(sets) == 1, "budgets per head where all are normalised together")
    return {heads[0]: len(heads) for heads in sets.values()}


class _Head:
    """Constants, radii and covers of a head's maps; `scores`: of each kind its error per error, and its views."""

    def __init__(self, walk: Walk, layer: Layer, rows: int, head: int | None) -> None:
        self.walk, self.layer, self.head, self.rows = walk, layer, head, rows
        b, block, name = walk.radius, layer.block, layer.normaliser.name
        self.softmax = name == "softmax"  # rows of weights sum to 1
        temperature = layer.normaliser.temperature
        self.tau = num(temperature or 1) if temperature is not None or layer.qk != "split" else MP.sqrt(layer.d_head)
        value, covered = walk.matrix("W_V", block, head, layer.d, layer.out)
        offset, self.apart = walk.offset("b_V" if layer.v_bias else None, block, head)
        self.inside = b * value.op if self.softmax else b * value.op + offset
        self.value_radius = b * value.op + offset
        self.scores: list[tuple[str, Real, list[View]]] = []
        self.c, self.mass = num(0), num(0)
        {"split": self._split, "fixed": self._fixed, "joint": self._joint}[layer.qk](b, value.op)
        self.score_error = self.c * self.inside
        pooled = 1 if layer.qk == "fixed" else rows
        self.value = View("map", self.mass * b, pooled * (layer.heads // layer.groups), covered)

    def _weigh(self, largest: Real) -> None:
        """L1, L2: the constants of weights whose scores are at most so large."""
        normaliser, tau = self.layer.normaliser, self.tau
        self.c, self.mass = {
            "softmax": lambda: ((2 if self.walk.published else 1) / tau, num(1)),
            "softmax1": lambda: ((2 if self.walk.published else 1) / tau, num(1)),
            "sigmoid": lambda: (1 / (4 * tau), num(1)),
            "linear": lambda: (1 / tau, largest / tau),
            "custom": lambda: (num(normaliser.c) / tau, num(normaliser.mu)),
        }[normaliser.name]()

    def _split(self, b: Real, value: Real) -> None:
        """S4, and L13 where queries and keys are normalised."""
        walk, layer, block, width = self.walk, self.layer, self.layer.block, self.layer.d_head
        sides: list[tuple[str, Real, Real, Real, list[tuple[str, Real, View]]]] = []
        for name, points, copies in (("Q", self.rows, layer.heads), ("K", walk.seq_len, layer.groups)):
            map_, covered = walk.matrix(f"W_{name}", block, self.head, layer.d, width)
            size, apart = walk.offset(f"b_{name}" if layer.qk_bias else None, block, self.head)
            length, unit = b * map_.op + size, num(1)
            own: list[tuple[str, Real, View]] = []
            if layer.qk_norm != "none":
                heads, e = (copies if layer.qk_norm == "width" else 1), num(layer.qk_eps)
                largest, near = walk.vector(("sup",), f"norm_{name}.gain", block)
                whole = length * MP.sqrt(heads)  # of the rows of all heads that are normalised together
                length, unit = largest * whole / MP.sqrt(whole**2 / (width * heads) + e), largest / MP.sqrt(e)
                own = [(f"norm_{name}.gain", num(1), single("gain", width * heads, near, MP.sqrt(width * heads)))]
            if layer.qk_bias:
                own.insert(0, (f"b_{name}", unit, single("vector", width, apart)))
            sides.append((name, length, map_.op, unit, [(f"W_{name}", unit, View("map", b, points, covered)), *own]))
        (_, q, q_op, q_unit, q_own), (_, k, k_op, k_unit, k_own) = sides
        self._weigh(q * k)
        self.lipschitz = value * self.mass + self.c * self.inside * (q_unit * q_op * k + q * k_op * k_unit)
        for mine, theirs in zip(q_own, k_own, strict=True):
            self.scores += [(mine[0], k * mine[1], [mine[2]]), (theirs[0], q * theirs[1], [theirs[2]])]

    def _fixed(self, b: Real, value: Real) -> None:
        """S5."""
        walk, layer, tau = self.walk, self.layer, self.tau
        q, covered = walk.matrix("q", layer.block, self.head, layer.d, 1)
        self._weigh(b * q.op)
        plain = self.softmax or (layer.normaliser.name == "softmax1" and not layer.v_bias)
        self.lipschitz = value * self.mass + self.c * self.inside * q.op
        if plain and layer.cap is None and not walk.published:
            self.lipschitz = value * MP.sqrt(1 + (b * q.op / tau) ** 2)
        self.scores = [("q", num(1), [View("map", b, walk.seq_len, covered)])]

    def _joint(self, b: Real, value: Real) -> None:
        """S1-S3."""
        walk, layer, tau = self.walk, self.layer, self.tau
        wide = MP.sqrt(b**2 + 1) if layer.qk_bias else b
        keys = b if layer.keys_alone else wide
        w, covered = joint_scores(walk, layer, self.head)
        self._weigh(wide * keys * w.op)
        plain = self.softmax or (layer.normaliser.name == "softmax1" and not layer.qk_bias and not layer.v_bias)
        self.lipschitz = value * self.mass + self.c * self.inside * (keys + wide) * w.op
        if walk.published:
            steep = 2 * self.c if layer.normaliser.name == "custom" else 4 / tau
            self.lipschitz = value * self.mass + steep * self.inside * wide * w.op
        elif plain and layer.cap is None:
            self.lipschitz = value * (b**2 * w.op / tau + MP.sqrt(1 + (b * wide * w.op / tau) ** 2))
        ways = (("score", self.rows * walk.seq_len), ("query", self.rows), ("key", walk.seq_len))
        self.scores = [("W_QK", num(1), [View(kind, wide * keys, points, covered) for kind, points in ways])]


def joint_scores(walk: Walk, layer: Layer, head: int | None) -> tuple[Sizes, Sizes]:
    """W_QK by its own budget, or the product [W_Q; b_Q] [W_K; b_K]^T by those of its factors (L6)."""
    block, width, rows = layer.block, layer.d_head, layer.d + 1 if layer.qk_bias else layer.d
    columns = layer.d if layer.keys_alone else rows
    moved = ("b_Q" if layer.qk_bias else None, "b_K" if layer.qk_bias and not layer.keys_alone else None)
    budgeted = any(kind and walk.budget(kind, block, head) is not None for kind in ("W_Q", "W_K", *moved))
    if width is None or not budgeted:
        return walk.matrix("W_QK", block, head, rows, columns, width)
    q, k = (walk.matrix(kind, block, head, layer.d, width)[0] for kind in ("W_Q", "W_K"))
    b_q, b_k = (walk.offset(kind, block, head)[0] for kind in moved)
    (q_op, q_fro), (k_op, k_fro) = ([MP.sqrt(x**2 + b**2) for x in (w.op, w.fro)] for w, b in ((q, b_q), (k, b_k)))
    fro = min(q_op * k_fro, q_fro * k_op)
    two_one = min(q_op * (k.two_one_t + b_k), MP.sqrt(columns) * fro)
    two_one_t = min(k_op * (q.two_one_t + b_q), MP.sqrt(rows) * fro)
    entries, rank = MP.sqrt(rows * columns) * fro, min(width, rows, columns)
    product = Sizes(rows, columns, q_op * k_op, fro, two_one, two_one_t, entries, q_fro * k_fro, rank)
    return product, product
