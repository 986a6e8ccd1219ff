"""What proofs know of attention: its facts (L7, L8), its reach (G0e), and what it becomes beside linear maps (A6)."""

from __future__ import annotations

from collections.abc import Mapping

from boundcalc.setting import Attention
from boundcalc.statements.layers.attention.heads import attention
from boundcalc.statements.layers.attention.reach import reach, split
from boundcalc.statements.slots import LayerRule, Said


def _noise(layer: Attention) -> bool:
    """Not with options that came later (L11-L14)."""
    return layer.cap is None and layer.qk_norm == "none" and layer.offsets == "none"


def _says() -> Mapping[str, Said]:
    from boundcalc.statements.layers.attention.values import SAYS

    return SAYS


RULE = LayerRule(
    Attention,
    attention,
    noise=_noise,
    reach=reach,
    split=split,
    says=_says,
)
