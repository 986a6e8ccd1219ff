"""How much noise every piece gets (G11): the allocation of covers, with laws of noise for lemmas. Not trusted."""

from __future__ import annotations

import math

from boundcalc.base.numbers import FLOAT, LOG, LogFloat
from boundcalc.engine.allocate import Item, Option
from boundcalc.statements import gap
from boundcalc.statements.compose import Lowered, Piece
from boundcalc.statements.covers import Curve
from boundcalc.statements.noises import NOISES, events, spread
from boundcalc.statements.targets import Target


def noise_items(lowered: Lowered, eta: float) -> list[Item]:
    """The pieces with the laws that their noise may be compared with, all events counted."""
    members = [member for piece in lowered.pieces for member in piece.members]
    seen = sum(member.multiplicity * max(map(events, member.targets)) for member in members)
    depth = LogFloat.of(gap.noise_depth(FLOAT, eta, seen))
    return [_item(piece, depth) for piece in lowered.pieces]


def _item(piece: Piece, depth: LogFloat) -> Item:
    log_gain = piece.gain.log
    members: list[tuple[float, list[Option]]] = []
    zero = -math.inf
    for member in piece.members:
        options = [
            option for index, target in enumerate(member.targets) for option in _options(index, target, depth, log_gain)
        ]
        members.append((math.log(member.multiplicity), options))
        zero = max(zero, min(target.radius.log + target.norms.op.log for target in member.targets) + log_gain)
    if piece.cap is not None:
        zero = min(zero, piece.cap.log)
    return Item(piece.key, log_gain, zero, members, math.log(sum(member.multiplicity for member in piece.members)))


def _options(index: int, target: Target, depth: LogFloat, log_gain: float) -> list[Option]:
    found: list[Option] = []
    for law in NOISES.values():
        if law.applies(target) is None:
            profile = law.profile(target, 1)
            assert isinstance(profile, Curve)  # noqa: S101 - all laws of noise have curves
            reach = law.reach(target).log + spread(LOG, target, depth).log + log_gain
            found.append(Option(law, index, target, 1, reach, False, 0.0, 0.0, 0.0, True, profile))
    return found
