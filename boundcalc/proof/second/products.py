"""A6 in 50 digits: norms of products, and the setting that is made of them."""

from dataclasses import replace

from .covers import Sizes
from .layers import Layer
from .numbers import MP, Real, grown, num
from .setting import Budget, Setting, kind_and_block, placed, read_places, used, weights_of


def times(a: Sizes, b: Sizes) -> Sizes:
    """Norms of AB."""
    fro, nuclear = min(a.op * b.fro, a.fro * b.op), min(a.op * b.nuclear, a.nuclear * b.op, a.fro * b.fro)
    sides = a.op * b.two_one, a.two_one_t * b.op, a.one_one * b.one_one
    return Sizes(a.d, b.k, a.op * b.op, fro, *sides, nuclear, min(a.rank, b.rank))


def turned(a: Sizes) -> Sizes:
    """Norms of A'."""
    return replace(a, d=a.k, k=a.d, two_one=a.two_one_t, two_one_t=a.two_one)


def rounded(a: Sizes) -> Budget:
    """The budget of norms, rounded up and in order."""
    op = grown(a.op)
    fro = max(op, grown(a.fro))
    sides = (max(fro, grown(size)) for size in (a.two_one, a.two_one_t))
    return Budget(op, fro, *sides, rank=a.rank, schatten=(1.0, max(fro, grown(a.nuclear))))


def stacked(a: Sizes, row: Real, width: int) -> Sizes:
    """Norms of [A; c], |c| = row, of so many columns."""
    entries, op, fro = MP.sqrt(width) * row, MP.sqrt(a.op**2 + row**2), MP.sqrt(a.fro**2 + row**2)
    sides = a.two_one + entries, a.two_one_t + row, a.one_one + entries
    return Sizes(a.d + 1, a.k, op, fro, *sides, a.nuclear + row, a.rank + 1)


def cornered(a: Sizes, *, sharp: bool) -> Sizes:
    """Norms of A with a column more, that of a 1 in the last row: in a row of its own (`sharp`), or in that of an offset."""
    op = max(a.op, num(1)) if sharp else MP.sqrt(a.op**2 + 1)
    sides = a.two_one + 1, a.two_one_t + 1, a.one_one + 1
    more = int(sharp)
    return Sizes(a.d + more, a.k + 1, op, MP.sqrt(a.fro**2 + 1), *sides, a.nuclear + 1, a.rank + more)


class Made:
    """Budgets of products in a setting."""

    def __init__(self, setting: Setting) -> None:
        self.given = setting
        self.uses = used(setting)
        self.budgets: dict[str, Budget] = {}
        self._places: set[tuple[str, int | None]] = set()

    def alone(self, kind: str | None, block: int | None) -> bool:
        """Whether a place of the norms, if there is one, is that of one layer."""
        same = sum(number for (other, _), number in self.uses.items() if other == kind)
        return kind is None or (self.uses[kind, block] == 1 and (block is not None or same == 1))

    def matrix(self, kind: str, block: int | None, head: int | None, size: Sizes) -> None:
        """A product's budget."""
        self._write(kind, block, head, rounded(size))

    def length(self, kind: str, block: int | None, head: int | None, size: Real) -> None:
        """An offset's budget."""
        self._write(kind, block, head, Budget(op=grown(size)))

    def _write(self, kind: str, block: int | None, head: int | None, made: Budget) -> None:
        self.budgets[placed(kind, block, head)] = made
        self._places.add((kind, block))

    def setting(self, stages: tuple[Layer, ...]) -> Setting:
        """The setting of other layers: what was made, and of what was given all that is still read."""
        norms = self.given.norms
        kept = {key: size for key, size in norms.budgets.items() if kind_and_block(key) not in self._places}
        new = norms._replace(budgets={**kept, **self.budgets})
        read = {key for _, key in read_places(new, weights_of(stages))}
        new = new._replace(budgets={key: size for key, size in new.budgets.items() if key in read})
        return self.given._replace(stages=stages, norms=new)
