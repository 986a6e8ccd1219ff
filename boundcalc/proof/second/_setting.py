"""What is bounded, as a certificate's file says it: norms, sample and network, with every budget read by something."""

from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ._architecture import read_architecture
from ._layers import Layer, Weight, flat, weights, widths
from ._numbers import demand
from ._strict import KINDS, Record, read, value

_NAMES = {"op": "op", "F": "fro", "21": "two_one", "21T": "two_one_t", "11": "one_one", "sup": "sup", "row": "row"}
_NAMES |= {"heads": "heads", "nuclear": "nuclear"}
_MATRIX = "op fro two_one two_one_t one_one nuclear rank"
_READ = {"matrix": f"{_MATRIX} distance", "factor": _MATRIX, "table": f"{_MATRIX} row distance"}
_READ |= {"vector": "op fro two_one distance", "factor vector": "op fro two_one", "rows": "op fro two_one row distance"}
_READ |= {"gain": "sup distance", "scores": "sup fro nuclear", "values": "heads fro nuclear"}
"""The limits that a bound can use, by what a weight is."""


class Budget(
    namedtuple("_", "op fro two_one two_one_t one_one nuclear rank sup row heads distance", defaults=[None] * 11)
):
    """Limits on the norms of one matrix or vector; None where none is set. `distance`: those from a reference."""

    @property
    def limits(self) -> frozenset[str]:
        """What is set."""
        return frozenset(name for name in self._fields if getattr(self, name) is not None)


def _budget(where: str, data: Any) -> Budget:
    line = " ".join(f"{name}:length" for name in _NAMES) + " rank:index distance:budget"
    fields = vars(read("", where, data, line))
    budget = Budget(**{str(_NAMES.get(name, name)): size for name, size in fields.items()})
    sizes = [x for x in (budget.op, budget.fro, budget.two_one, budget.one_one) if x is not None]
    demand(all(low <= high for low, high in pairwise(sizes)), f"{where}: norms contradict each other")
    return budget


class Norms(namedtuple("_NORMS", "C budgets measured failure", defaults=[False, 0.0])):
    """The default C, budgets by place, whether they were measured, and with which chance wrongly."""

    @property
    def headed(self) -> bool:
        """Whether a head has a budget of its own."""
        return any("," in key for key in self.budgets)

    def place(self, kind: str, block: int | None = None, head: int | None = None) -> str | None:
        """The most particular place that has a budget for a matrix."""
        tried = (placed(kind, block, head), placed(kind, block), kind)
        return next((key for key in tried if key in self.budgets), None)


def _norms(where: str, data: Any) -> Norms:
    raw = read("C:positive? budgets:budgets measured:flag failure:share", where, data)
    unsure = raw.failure == 0 or (raw.measured and raw.failure < 1)
    demand(unsure, f"{where}: a chance of failure goes with measured norms")
    return Norms(**vars(raw))


def _budgets(where: str, data: Any) -> Mapping[str, Budget]:
    return {key: _budget(f"{where}.{key:.60}", entry) for key, entry in value("object", where, data).items()}


def _sample(where: str, data: Any) -> Record:
    line = "n_train:size delta:chance margin:positive train_error:share lipschitz:positive? "
    sample = read(line + "measured:margin|train_error*", where, data)
    ramp = sample.lipschitz is None or (sample.margin == 0.12 and sample.train_error == 0 and not sample.measured)
    demand(ramp, f"{where}: margins belong to the ramp loss, and the loss is another one")
    return sample


KINDS.update(budget=_budget, budgets=_budgets, norms=_norms, sample=_sample)


Setting = namedtuple("Setting", "stages seq_len classes input_radius norms sample bits about", defaults=[None, None])
"""A network as a list of layers, the norms of its weights, the sample, the bits of a stored weight, if given, and
the architecture as the file has it."""


def read_setting(where: str, data: Any) -> Setting:
    """A setting whose shapes fit and whose budgets are all read."""
    raw = read("architecture:object norms:norms sample:sample", where, data)
    about, stages = read_architecture(raw.architecture)
    setting = Setting(
        stages, about.seq_len, about.classes, about.input_radius, raw.norms, raw.sample, about.bits, about
    )
    demand(widths(stages)[1] in (None, about.classes), "the layers do not end with the classes")
    _account(setting)
    return setting


def weights_of(layers: Iterable[Layer], seq_len: int = 0) -> Iterator[Weight]:
    """All that layers train."""
    return (weight for layer in flat(layers) for weight in weights(layer, seq_len))


def trained(layers: Iterable[Layer]) -> Iterator[Weight]:
    """The same, and the factors of products."""
    return (part for weight in weights_of(layers) for part in (weight, *weight.factors))


def placed(kind: str, block: int | None = None, head: int | None = None) -> str:
    """The key of a place."""
    return kind if block is None else f"{kind}[{block}]" if head is None else f"{kind}[{block},{head}]"


def kind_and_block(key: str) -> tuple[str, int | None]:
    """What a key is about, its head apart."""
    kind, _, place = key.partition("[")
    return kind, int(place.partition(",")[0].rstrip("]")) if place else None


def read_places(norms: Norms, weights: Iterable[Weight]) -> Iterator[tuple[Weight, str | None]]:
    """Every weight that is looked up, with the place of its budget: factors where one of them has a budget."""
    for weight in weights:
        for head in range(weight.heads) if norms.headed and weight.heads else (None,):
            own = norms.place(weight.kind, weight.block, head)
            apart = any(norms.place(part.kind, part.block, head) is not None for part in weight.factors)
            demand(own is None or not apart, f"{weight.kind} and its factors both have budgets")
            for part in weight.factors if apart else (weight,):
                yield part, norms.place(part.kind, part.block, head)


def _account(setting: Setting) -> None:
    """Every budget, and every limit of it, is read: one that is ignored leaves the knob in its place."""
    norms = setting.norms
    places = list(read_places(norms, weights_of(setting.stages)))
    missing = [weight.kind for weight, key in places if key is None]
    demand(norms.C is not None or not missing, f"{missing[:1]} have no budget")
    places += [(weight, norms.place(weight.kind, weight.block)) for weight in products(setting.stages)]
    read: dict[str | None, set[str]] = {}
    for weight, key in places:
        read[key] = read.get(key, set()) | set(_READ[weight.role].split())
    for key, budget in norms.budgets.items():
        demand(key in read, f"nothing reads the norms of {key:.60}")
        apart = budget.distance.limits if budget.distance is not None else frozenset[str]()
        strange = (budget.limits - read[key]) | (apart - (read[key] - {"distance"}))
        demand(not strange, f"nothing reads {sorted(strange)[:1]} of {key}")


# -- products that may have budgets besides those of their factors


def looks_up(layers: Sequence[Layer]) -> tuple[Layer, Layer, Layer] | None:
    """A7: the tokens, heads and output of a network whose one attention is read at a row of its own."""
    first, part, *rest = layers if len(layers) > 1 else (*layers, *layers)
    if (first.label, part.label) != ("embedding", "residual") or part.beside or not part.skip:
        return None
    if [layer.label for layer in part.branch] != ["attention", "linear"]:
        return None
    heads, output = part.branch
    plain = heads.keys_alone and heads.qk == "joint" and heads.qk_norm == "none" and heads.offsets == "none"
    alone = heads.groups == heads.heads and heads.combine == "concat" and not heads.causal
    rows = first.own_row is not None and first.positions == "learned" and not first.segments
    mixing = ("attention", "lookup", "embedding", "hidden", "pool")
    others = [layer for layer in flat(rest) if layer.label in mixing]
    last = [layer.how for layer in rest if layer.label == "pool"]
    return (first, heads, output) if plain and alone and rows and last == ["cls"] and len(others) == 1 else None


def reads_out(layers: Sequence[Layer]) -> tuple[tuple[Layer, ...], Layer, Layer, tuple[Layer, ...], Layer] | None:
    """A6 behind a residual: what is before, the residual, its last map, pools and the read-out."""
    *front, readout = layers
    pools: list[Layer] = []
    while front and front[-1].label == "pool":
        pools.insert(0, front.pop())
    part = front.pop() if front else readout
    if readout.label != "linear" or part.label != "residual" or not part.skip or part.beside or not part.branch:
        return None
    last = part.branch[-1]
    fewer = last.label == "linear" and last.d_out >= 2 * readout.d_out
    return (tuple(front), part, last, tuple(pools), readout) if fewer else None


def products(layers: Sequence[Layer]) -> Iterator[Weight]:
    """Which of them a network has."""
    first, last = looks_up(layers), reads_out(layers)
    if first is not None:
        yield from weights(Layer(label="lookup", vocabulary=0, heads=0, d_value=0))
        yield Weight("first_row", "vector", 0, first[2].block)
    if last is not None:
        yield Weight(f"{last[2].kind}_to_readout", "matrix", 0, last[2].block)
