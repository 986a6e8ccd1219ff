"""L5, L10 and T9: LayerNorm, or RMSNorm without centring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import Count, Length, Name, Size
from boundcalc.base.system import Number
from boundcalc.layers.base import EveryRow, Layer, Proved, Weight, Widths, place_named, register_layer
from boundcalc.layers.facts import Context, Facts, Slot, offset_slot, one_slot, vector_target
from boundcalc.layers.forward import Arrays, Forward

_ROUNDING = 1e-9
"""A limit that is met up to rounding is met, in every number system alike."""


@register_layer
@dataclass(frozen=True, slots=True)
class LayerNorm(EveryRow):
    """LayerNorm, or RMSNorm without centring, with a gain and perhaps an offset.

    `variance_floor`: coordinate variance (mean square for RMSNorm) that the class guarantees for every admissible
    input. `around_one`: the gain is 1 + w, and w is what is trained and has the budget.
    """

    label: ClassVar[str] = "layernorm"
    title: ClassVar[str] = "normalisation"
    noise_fields: ClassVar[Proved] = {"around_one": False}

    kind: Name
    d: Size
    eps: Length = 1e-5
    centred: bool = True
    gain: bool = True
    offset: bool = False
    variance_floor: Length = 0.0
    block: Count | None = None
    around_one: bool = False

    def contradiction(self) -> str | None:
        if not self.eps and not self.variance_floor:
            return f"{self.kind}: eps must be above 0, or a variance_floor given"
        if self.around_one and not self.gain:
            return f"{self.kind}: around_one says what the gain is, so it needs a gain"
        return None

    def fitted(self, has: Callable[[str], bool]) -> Layer:
        gain, offset = (has(f"{self.kind}.{part}") for part in ("gain", "offset"))
        return replace(self, gain=gain, offset=offset, around_one=self.around_one and gain)

    def brief(self) -> str:
        return f"{'layernorm' if self.centred else 'rmsnorm'} (eps {self.eps:g})"

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        gain = (Weight(f"{self.kind}.gain", "gain", (self.d,), self.block),) if self.gain else ()
        return (*gain, Weight(f"{self.kind}.offset", "vector", (self.d,), self.block)) if self.offset else gain

    def widths(self) -> Widths:
        return self.d, self.d

    def facts(self, at: Context) -> Facts:
        self._check_floor(at)
        ns, reach, largest = at.ns, self._normalised(at), self._largest_gain(at)
        stretch = 1 / ns.sqrt(ns.number(self.variance_floor) + ns.number(self.eps))
        slots: list[Slot] = []
        if self.gain:
            covered = at.weights.gain(f"{self.kind}.gain", self.block)[1]
            gain = vector_target(ns, "gain", self.d, covered, reach)
            slots.append(one_slot(f"{self.kind}.gain", ns.number(1), gain))
        if self.offset:
            covered = at.weights.vector(f"{self.kind}.offset", self.block)[1]
            slots.append(offset_slot(f"{self.kind}.offset", ns.number(1), self.d, covered, at))
        uses = ("L5", "T9", "L10") if self.around_one else ("L5", "T9")
        return Facts(self._radius(at, reach), largest * stretch, tuple(slots), uses)

    def _normalised(self, at: Context) -> Number:
        """The longest row before gain and offset."""
        d, eps = at.ns.number(self.d), at.ns.number(self.eps)
        return at.radius * at.ns.sqrt(d / (at.radius**2 + d * eps)) if self.eps else at.ns.sqrt(d)

    def _largest_gain(self, at: Context) -> Number:
        largest = at.weights.gain(f"{self.kind}.gain", self.block)[0] if self.gain else 1
        return 1 + largest if self.around_one else largest

    def _radius(self, at: Context, reach: Number) -> Number:
        """The longest row of the output, of normalised rows no longer than `reach`."""
        radius = self._largest_gain(at) * reach
        return radius + at.weights.vector(f"{self.kind}.offset", self.block)[0] if self.offset else radius

    def _check_floor(self, at: Context) -> None:
        """Refuses a class without members: rows of norm b have no mean square or variance above b^2 / d."""
        if not self.variance_floor or at.ns.name == "sympy":  # of symbols it is not known
            return
        radius = float(at.radius)
        most = 0.0 if self.centred and self.d == 1 else radius * radius / self.d
        if self.variance_floor * (1 - _ROUNDING) > most:
            where = place_named(self.kind, self.block)
            raise InvalidSetting(
                f"no network has a variance of {self.variance_floor:g} before {where}: rows x there have |x| <= "
                f"{radius:.4g} and a variance of at most {most:.4g}; lower the variance_floor (0 for none)"
            )

    def reach(self, at: Context) -> Number:
        """A centred row of width 1 is zero."""
        return self._radius(at, at.ns.number(0) if self.centred and self.d == 1 else self._normalised(at))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        xp = run.xp
        y = xp.layer_norm(x, self.eps) if self.centred else x / xp.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        if self.gain:
            gain = weights(f"{self.kind}.gain")[..., None, :]
            y = y * (1 + gain if self.around_one else gain)
        return y + weights(f"{self.kind}.offset")[..., None, :] if self.offset else y
