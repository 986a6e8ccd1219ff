"""A0 in 50 digits: what is carried through a network, and what covers of its maps cost and leave."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._covers import LEAST, REFINING, Sizes, View, cost, cost_at_every_scale, single
from ._noises import LAWS, divergence, events
from ._numbers import MP, Real, Refused, demand, num
from ._setting import Budget, Setting

_Maps = Sequence[tuple[int, list[View]]]


@dataclass
class Walk:
    """Radius, error and log count on the way through a network at one level.

    `covers`: of every piece, counted on so many `samples`; None to learn the radius alone. `every_scale`: whether costs
    stand for all scales (A4, PUB). `published`: whether L1 and L7 have their published constants. `depth`: t of G11,
    where maps carry noise instead of being covered. `before`: covers of the level before, where this one may refine
    them (G12). `at`: the radius at which each layer (its id) is reached.
    """

    setting: Setting
    covers: Mapping[str, Any] | None
    samples: int
    every_scale: bool = False
    published: bool = False
    depth: Real | None = None
    before: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self.norms, self.seq_len = self.setting.norms, self.setting.seq_len
        self.radius: Real = num(self.setting.input_radius)
        self.error: Real = num(0)
        self.count: Real = num(0)
        self.events = 0
        self.seen: dict[str, int] = Counter()
        self.at: dict[int, Real] = {}

    # -- budgets

    def budget(self, kind: str, block: int | None = None, head: int | None = None) -> Budget | None:
        """The most particular budget given for a matrix."""
        key = self.norms.place(kind, block, head)
        return None if key is None else self.norms.budgets[key]

    def limit(self, kind: str, block: int | None = None, head: int | None = None) -> Budget:
        """The budget of a matrix, or the knob."""
        C = self.norms.C
        return self.budget(kind, block, head) or Budget(op=C, two_one=C, sup=C, row=C, heads=C)

    def matrix(self, kind: str, block: Any, head: Any, d: int, k: int, rank: int | None = None) -> tuple[Sizes, Sizes]:
        """Norms of a matrix, and of its distance from a reference, of twice the rank (T7)."""
        budget = self.limit(kind, block, head)
        whole, apart = Sizes.of(budget, d, k, rank), budget.distance
        return whole, whole if apart is None else Sizes.of(apart, d, k, None if rank is None else 2 * rank)

    def vector(self, names: Sequence[str], kind: str, block: int | None = None, head: int | None = None) -> list[Real]:
        """The least of some norms of a vector, and of its distance from a reference."""
        budget = self.limit(kind, block, head)
        out: list[Real] = []
        for part in (budget, budget.distance or budget):
            limits = [x for name in names if (x := getattr(part, name)) is not None]
            demand(limits, f"{kind} has no budget of its own norm")
            out.append(num(min(limits) or LEAST))
        return out

    def offset(self, kind: str | None, block: int | None, head: int | None = None) -> Sequence[Real]:
        """|c| of an offset (T8); of one that is not there 0."""
        return (num(0), num(0)) if not kind else self.vector(("op", "fro", "two_one"), kind, block, head)

    # -- pieces

    def cover(self, kind: str, block: int | None, view: View, steep: Any = 1, n: int = 1, cap: Real = None) -> None:
        """One kind of map with one way to see it: what its cover leaves is added to the error."""
        self.error += self.piece(kind, block, [(n, [view])], num(steep), cap)

    def shift(self, kind: str | None, block: int | None, size: int, apart: Real, steep: Any = 1) -> None:
        """The same for an offset, if there is one (T8)."""
        if kind:
            self.cover(kind, block, single("vector", size, apart), steep)

    def piece(self, kind: str, block: Any, maps: _Maps, steep: Real, cap: Real = None, bends: bool = False) -> Real:
        """Adds the cost of a piece (for each kind of map how many, and the ways to see it).

        Returns the error it leaves.
        """
        name = kind if block is None else f"{kind}[{block}]"
        self.seen[name] += 1
        if self.covers is None:
            return num(0)
        key = name if self.seen[name] == 1 else f"{name}#{self.seen[name]}"
        demand(key in self.covers, f"{key} is not covered")
        cover = self.covers[key]
        demand(len(cover.choices) == len(maps), f"{key} has {len(maps)} kinds of maps")
        eps = MP.exp(num(cover.log_eps))
        outside = False
        for index, (choice, (number, views)) in enumerate(zip(cover.choices, maps, strict=True)):
            if choice.lemma == "zero":
                demand(not self.every_scale, f"{key}: a closed form leaves nothing out")
                outside = outside or all(view.radius * view.sizes.op > eps for view in views)
                continue
            demand(choice.target < len(views), f"{key}: there is no way {choice.target} to see it")
            view = views[choice.target]
            if choice.refines:
                self.count += number * self._refinement(key, index, choice, cover.log_eps, view)
            elif self.depth is not None and choice.lemma in LAWS:
                self.events += number * events(view)
                self.count += number * divergence(choice, view, eps, self.depth)
            else:
                demand(self.published or choice.lemma != "Tpub", f"{key}: Tpub has only the word of the literature")
                price = cost_at_every_scale if self.every_scale and choice.lemma != "Tpub" else cost
                self.count += number * price(choice, view, eps, self.samples)
        if outside:
            demand(cap is not None and all(c.lemma == "zero" for c in cover.choices), f"{key} is not covered at eps")
            return cap
        left = steep * eps
        if cap is None or self.every_scale:
            return left
        return cap * MP.tanh(left / cap) if bends else min(left, cap)

    def _refinement(self, key: str, index: int, choice: Any, log_eps: float, view: View) -> Real:
        """G12: a cover of the ball in which the level before has left one map."""
        old = None if self.before is None else self.before.get(key)
        if old is None or index >= len(old.choices):
            raise Refused(f"{key}: there is nothing before it to refine")
        mine = old.choices[index]
        both = choice.lemma in REFINING and mine.lemma != "zero" and mine.target == choice.target
        demand(both, f"{key}: {choice.lemma} of {mine.lemma} refines nothing in the same metric")
        ratio = MP.exp(num(old.log_eps) - num(log_eps))
        unit = view._replace(radius=num(1), sizes=view.sizes._replace(op=ratio))
        return cost(choice, unit, num(1), self.samples)
