"""How much noise every piece gets (G11): the allocation of covers, with laws of noise among the lemmas. Not trusted."""

from __future__ import annotations

from collections.abc import Callable

from boundcalc.base.numbers import FLOAT, LOG, LogFloat
from boundcalc.engine.allocate import Item, Option, build_items
from boundcalc.statements import gap
from boundcalc.statements.compose import Lowered
from boundcalc.statements.covers import CoverLemma, Curve
from boundcalc.statements.noises import NOISES, events, spread
from boundcalc.statements.targets import Target


def noise_items(lowered: Lowered, eta: float, allowed: Callable[[CoverLemma], bool] | None = None) -> list[Item]:
    """The pieces with the laws that their noise may be compared with beside uniform covers, all events counted."""
    members = [member for piece in lowered.pieces for member in piece.members]
    seen = sum(member.multiplicity * max(map(events, member.targets)) for member in members)
    depth = LogFloat.of(gap.noise_depth(FLOAT, eta, seen))
    items = build_items(lowered, 1, allowed or (lambda _: False))
    for item, piece in zip(items, lowered.pieces, strict=True):
        for (_, options), member in zip(item.members, piece.members, strict=True):
            for index, target in enumerate(member.targets):
                options += _options(index, target, depth, item.log_gain)
    return items


def _options(index: int, target: Target, depth: LogFloat, log_gain: float) -> list[Option]:
    found: list[Option] = []
    for law in NOISES.values():
        if law.applies(target) is None:
            profile = law.profile(target, 1)
            assert isinstance(profile, Curve)  # noqa: S101 - all laws of noise have curves
            reach = law.reach(target).log + spread(LOG, target, depth).log + log_gain
            found.append(Option(law, index, target, 1, reach, False, 0.0, 0.0, 0.0, True, profile))
    return found
