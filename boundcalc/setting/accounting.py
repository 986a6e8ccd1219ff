"""Every budget given is read by some layer, or refused: one that is ignored leaves the knob C in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.validate import choice
from boundcalc.layers.base import Weight, weights_of
from boundcalc.layers.products import products_of
from boundcalc.setting.architecture import Architecture
from boundcalc.setting.norms import JSON_NAMES, Budget, Norms, place_of


def account(norms: Norms, architecture: Architecture) -> None:
    """Refuses budgets that no lookup of an architecture reads, block by block and head by head."""
    weights = list(weights_of(architecture.stages, architecture.seq_len))
    products = list(products_of(architecture.stages, architecture.seq_len))
    places: dict[str, dict[int | None, int]] = {}
    for part in (part for weight in (*weights, *products) for part in weight.all):
        places.setdefault(part.kind, {})[part.block] = part.heads
    for key in norms.budgets:
        _check_place(key, places)
    read = {key: weight for weight, key in lookups(norms, weights) if key is not None}
    read |= {key: product for product in products if (key := norms.place(product.kind, product.block)) is not None}
    for key, budget in norms.budgets.items():
        if key not in read:
            raise InvalidSetting(f"norms of {key}: it would be ignored, as each of its places reads another budget")
        _check_limits(read[key], key, budget)


def _check_place(key: str, places: dict[str, dict[int | None, int]]) -> None:
    """Kinds, blocks and heads that exist."""
    kind, block, head = place_of(key)
    blocks = places[choice(f"norms of {key}: the kind", kind, places)]
    if block is not None and block not in blocks:
        numbers = [b for b in blocks if b is not None]
        have = f"its blocks are {min(numbers)} to {max(numbers)}" if numbers else "it belongs to no block"
        raise InvalidSetting(f"norms of {key}: {kind} has no block {block}; {have}")
    if head is not None and head >= blocks[block]:
        raise InvalidSetting(f"norms of {key}: no head {head}; {kind} has {blocks[block]}, numbered from 0")


def _check_limits(weight: Weight, key: str, budget: Budget) -> None:
    """Refuses limits that no bound can use for such a weight: they would be ignored."""
    for part, limits in ((budget, weight.limits), (budget.distance, weight.limits - {"distance"})):
        for symbol, name in JSON_NAMES.items():
            if part is not None and name not in limits and getattr(part, name) is not None:
                usable = ", ".join(word for word, field in JSON_NAMES.items() if field in limits)
                where = "" if part is budget else "distance: "
                raise InvalidSetting(
                    f"norms of {key}: {where}nothing reads {symbol!r} of {weight.kind}; what can be used is {usable}"
                )


def lookups(norms: Norms, weights: Iterable[Weight]) -> Iterator[tuple[Weight, str | None]]:
    """Every weight that is looked up, with the key that is found, head by head where heads have own budgets."""
    for weight in weights:
        for head in range(weight.heads) if norms.headed and weight.heads else (None,):
            for part in weight.read(norms, head):
                yield part, norms.place(part.kind, part.block, head)


def refuse_missing(norms: Norms, architecture: Architecture) -> None:
    """Refuses norms that leave weights without a budget and without the knob: all of them at once."""
    weights = weights_of(architecture.stages, architecture.seq_len)
    kinds = list(dict.fromkeys(weight.kind for weight, key in lookups(norms, weights) if key is None))
    if kinds and norms.C is None:
        raise InvalidSetting(
            f"no norm budget for {', '.join(kinds)}: set their default C (--C 1), or give each, such as "
            f"--norm {kinds[0]}=op:2.5,21:8 (--norms-template lists all with their norms)"
        )
