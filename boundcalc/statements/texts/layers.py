"""L and S as statements: each is said where the rule of the layer stands that it is about."""

from __future__ import annotations

from boundcalc.base.statement import Statement
from boundcalc.setting.named import is_ours
from boundcalc.statements.layers import LAYERS as RULES

_OURS = (rule for label, rule in RULES.items() if is_ours(label))
_SAID = {name: said for rule in _OURS if rule.says is not None for name, said in rule.says().items()}


def _named(kind: str) -> tuple[Statement, ...]:
    """The statements L or S, in their order."""
    names = sorted((name for name in _SAID if name[0] == kind), key=lambda name: int(name[1:]))
    return tuple(Statement(name, compute=_SAID[name].value, applies=_SAID[name].applies) for name in names)


LAYERS, SCORES = _named("L"), _named("S")
