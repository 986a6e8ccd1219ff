"""What the bounds of a setting, as formulas, have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

from boundcalc.formulas.symbolic.formula import Formula
from boundcalc.formulas.symbolic.system import Expr, number
from boundcalc.setting import Setting


@dataclass(frozen=True)
class Form:
    """Bounds of one setting, any of whose sizes and budgets may be symbols.

    Attributes:
        setting: what is bounded.
        quantities: what is derived, each an attribute.
    """

    setting: Setting
    quantities: ClassVar[tuple[str, ...]] = ()

    @property
    def formulas(self) -> Mapping[str, Callable[[], Formula]]:
        """What is derived, by name."""
        return {name: partial(getattr, self, name) for name in self.quantities}

    @property
    def of_readout(self) -> Self:
        """The same of the read-out, whose error is counted as it is."""
        return replace(self, setting=self.setting.but(lipschitz=1.0))

    @property
    def _m(self) -> Expr:
        return number(self.setting.sample.n_train)

    @property
    def _delta(self) -> Expr:
        return number(self.setting.sample.delta)
