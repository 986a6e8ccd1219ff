"""The class with fewer maps in which the class of a setting lies, and whose covers serve it: maps that meet, and look-ups."""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.setting import Setting
from boundcalc.statements.meet import met
from boundcalc.statements.outputs import out_of_heads
from boundcalc.statements.products import looked_up, read_out


def joined(setting: Setting) -> Setting | Refusal:
    """The setting with maps that meet made one; what no maps meet in is refused."""
    return joined_how(setting)[0]


def joined_how(setting: Setting) -> tuple[Setting | Refusal, bool]:
    """The same, and whether nothing but maps in a row was joined: they have fewer numbers, hence smaller uniform covers.

    Of distances from references nothing is left in products.
    """
    larger, beside = setting, any(budget.distance is not None for budget in setting.norms.budgets.values())
    for step in (looked_up, read_out, met, out_of_heads):
        found = step(larger)
        if found is not None:
            larger, beside = found, beside or step is not met
    if larger is setting:
        return Refusal("A6", "no linear maps that meet", "two maps with nothing that acts between them"), False
    return larger, not beside
