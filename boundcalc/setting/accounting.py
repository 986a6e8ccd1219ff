"""Every budget given is read by some layer, or refused: one that is ignored leaves the knob C in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.layers.base import Weight, weights_of
from boundcalc.layers.products import products_of
from boundcalc.setting.architecture import Architecture
from boundcalc.setting.norms import JSON_NAMES, Budget, Norms, place_of


def account(norms: Norms, architecture: Architecture) -> None:
    """Refuses budgets that no lookup of an architecture reads, block by block and head by head."""
    weights = list(weights_of(architecture.stages, architecture.seq_len))
    products = list(products_of(architecture.stages, architecture.seq_len))
    _check_places(norms, [*weights, *products])
    read = {key: weight for weight, key in lookups(norms, weights) if key is not None}
    read |= {key: product for product in products if (key := norms.place(product.kind, product.block)) is not None}
    for key, budget in norms.budgets.items():
        if key not in read:
            raise InvalidSetting(f"norms of {key}: {_why_unread(key, norms, weights)}")
        _check_limits(read[key], key, budget)


def _check_limits(weight: Weight, key: str, budget: Budget) -> None:
    """Refuses limits that no bound can use for such a weight: they would be ignored."""
    for part, where in ((budget, ""), (budget.distance, "distance: ")):
        for symbol, name in JSON_NAMES.items():
            unread = name not in weight.limits or (bool(where) and name == "distance")
            if unread and part is not None and getattr(part, name) is not None:
                usable = ", ".join(word for word, field in JSON_NAMES.items() if field in weight.limits)
                raise InvalidSetting(
                    f"norms of {key}: {where}nothing reads {symbol!r} of {weight.kind}, it would be ignored; "
                    f"what can be used is {usable}"
                )


def lookups(norms: Norms, weights: Iterable[Weight]) -> Iterator[tuple[Weight, str | None]]:
    """Every weight that is looked up, with the key that is found, head by head where heads have own budgets."""
    for weight in weights:
        heads = range(weight.heads) if norms.headed and weight.heads else (None,)
        for head in heads:
            for part in weight.read(norms, head):
                yield part, norms.place(part.kind, part.block, head)


def refuse_missing(norms: Norms, architecture: Architecture) -> None:
    """Refuses norms that leave weights without a budget and without the knob: all of them at once."""
    if norms.C is not None:
        return
    weights = weights_of(architecture.stages, architecture.seq_len)
    missing = [weight.kind for weight, key in lookups(norms, weights) if key is None]
    if missing:
        kinds = list(dict.fromkeys(missing))
        raise InvalidSetting(
            f"no norm budget for {', '.join(kinds)}: set their default C (--C 1), or give each, such as "
            f"--norm {kinds[0]}=op:2.5,21:8 (--norms-template lists all with their norms)"
        )


def _check_places(norms: Norms, weights: Sequence[Weight]) -> None:
    """Kinds, blocks and heads that exist."""
    places: dict[str, dict[int | None, int]] = {}
    for weight in weights:
        for part in weight.all:
            places.setdefault(part.kind, {})[part.block] = part.heads
    for key in norms.budgets:
        kind, block, head = place_of(key)
        blocks = places[validate.choice(f"norms of {key}: the kind", kind, places)]
        if block is not None and block not in blocks:
            numbers = [b for b in blocks if b is not None]
            have = f"its blocks are {min(numbers)} to {max(numbers)}" if numbers else "it belongs to no block"
            raise InvalidSetting(f"norms of {key}: {kind} has no block {block}; {have}")
        if head is not None and head >= blocks[block]:
            raise InvalidSetting(f"norms of {key}: no head {head}; {kind} has {blocks[block]}, numbered from 0")


def _why_unread(key: str, norms: Norms, weights: Sequence[Weight]) -> str:
    """What is read in the place of a budget that is not."""
    kind, block, head = place_of(key)
    longer = f"{key}[" if block is None else f"{key[:-1]},"
    inner = [other for other in norms.budgets if other.startswith(longer)]
    if inner:
        return f"it would be ignored, as every place it stands for has a budget of its own ({', '.join(inner[:3])})"
    holders = [w for w in weights if any(part.kind == kind and block in (None, part.block) for part in w.all)]
    names = dict.fromkeys(part.kind for w in holders for part in w.read(norms, head))
    return f"it would be ignored: what is read there is {', '.join(names)}"
