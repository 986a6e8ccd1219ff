"""L5, L10 and T9: LayerNorm, or RMSNorm without centring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import Count, Length, Name, Size
from boundcalc.layers.base import EveryRow, Weight, place_named, register_layer
from boundcalc.layers.facts import Context, Facts
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

    label = "layernorm"
    noise_fields = ("around_one",)

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

    def brief(self) -> str:
        return f"{'layernorm' if self.centred else 'rmsnorm'} (eps {self.eps:g})"

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        gain = (Weight(f"{self.kind}.gain", "gain", (self.d,), self.block),) if self.gain else ()
        return (*gain, Weight(f"{self.kind}.offset", "vector", (self.d,), self.block)) if self.offset else gain

    def facts(self, at: Context) -> Facts:
        self._check_floor(at)
        ns, weights, d, eps = at.ns, self.weights(at.seq_len), at.ns.number(self.d), at.ns.number(self.eps)
        reach = at.radius * ns.sqrt(d / (at.radius**2 + d * eps)) if self.eps else ns.sqrt(d)  # before gain and offset
        sizes = {weight.role: at.size(weight) for weight in weights}
        largest = sizes.get("gain", ns.number(1))
        largest = 1 + largest if self.around_one else largest
        stretch = 1 / ns.sqrt(ns.number(self.variance_floor) + eps)
        slots = tuple(at.slot(weight, radius=reach) for weight in weights)
        uses = ("L5", "T9", "L10") if self.around_one else ("L5", "T9")
        return Facts(largest * reach + sizes.get("vector", 0), largest * stretch, slots, uses)

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

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        xp = run.xp
        y = xp.layer_norm(x, self.eps) if self.centred else x / xp.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        if self.gain:
            gain = weights(f"{self.kind}.gain")[..., None, :]
            y = y * (1 + gain if self.around_one else gain)
        return y + weights(f"{self.kind}.offset")[..., None, :] if self.offset else y
