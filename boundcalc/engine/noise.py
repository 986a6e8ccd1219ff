"""How much noise every piece gets (G11): the allocation of covers, with laws of noise among the lemmas. Not trusted."""

from __future__ import annotations

from collections.abc import Container, Sequence

from boundcalc.base.numbers import FLOAT, LOG, LogFloat
from boundcalc.engine.options import Item, Option
from boundcalc.proof.certificate import Choice
from boundcalc.statements import gap
from boundcalc.statements.covers.curve import Curve
from boundcalc.statements.network import Network
from boundcalc.statements.noises import NOISES, events, spread
from boundcalc.statements.targets import Target


class NoiseItems:
    """The pieces with the laws that their noise may be compared with beside uniform covers, all events counted."""

    def __init__(self, lowered: Network, covers: Sequence[Item], laws: Container[str]) -> None:
        """Laws, of those named, beside the covers of the pieces of a network."""
        self._members = [piece.members for piece in lowered.pieces]
        self.events = sum(
            member.multiplicity * max(map(events, member.targets)) for members in self._members for member in members
        )
        self._covers = covers
        far: dict[int, list[float]] = {}
        self._laws = [
            [
                [
                    made
                    for index, target in enumerate(member.targets)
                    for made in _options(index, target, item.log_gain, laws, far)
                ]
                for member in piece.members
            ]
            for item, piece in zip(covers, lowered.pieces, strict=True)
        ]

    def seen(self, choices: Sequence[Sequence[Choice]]) -> int:
        """How many events one example sees where pieces are covered, or carry noise, like this."""
        found = 0
        for members, chosen in zip(self._members, choices, strict=True):
            for member, choice in zip(members, chosen, strict=True):
                if choice.lemma in NOISES:
                    found += member.multiplicity * events(member.targets[choice.target])
        return max(1, found)

    def at(self, eta: float, seen: int | None = None) -> list[Item]:
        """Where noise may move the loss of an example by more than the scale with this chance: only reaches differ.

        `seen`: how many events there are, if not one for all that could carry noise.
        """
        depth = LogFloat.of(gap.noise_depth(FLOAT, eta, self.events if seen is None else seen))
        spreads: dict[tuple[str, int, object], float] = {}

        def farther(option: Option) -> Option:
            target = option.target
            alike = target.kind, target.k, target.extra  # of what the spread looks at
            if alike not in spreads:
                spreads[alike] = spread(LOG, target, depth).log
            return option.farther(spreads[alike])

        return [
            item.beside([list(map(farther, options)) for options in laws])
            for item, laws in zip(self._covers, self._laws, strict=True)
        ]


def _options(
    index: int, target: Target, log_gain: float, laws: Container[str], far: dict[int, list[float]]
) -> list[Option]:
    """The laws for a target, with the reach of noise that moves points of norm 1 by 1; `far`: known costs by shape."""
    found: list[Option] = []
    for law in NOISES.values():
        if law.name in laws and law.applies(target) is None:
            profile = law.profile(target, 1)
            assert isinstance(profile, Curve)  # noqa: S101 - all laws of noise have curves
            reach = law.reach(target).log + log_gain
            option = Option(law, index, target, 1, reach, False, 0.0, 0.0, 0.0, True, profile)
            if target.most is None:  # else costs depend on more than the shape
                option.far = far.setdefault(id(profile), option.far)
            found.append(option)
    return found
