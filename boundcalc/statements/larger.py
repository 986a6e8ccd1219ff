"""A6 and A7 together: the class with fewer maps in which the class of a setting lies, and whose covers serve it."""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.setting import Setting
from boundcalc.statements.meet import met
from boundcalc.statements.products import looked_up, read_out


def joined(setting: Setting) -> Setting | Refusal:
    """The setting with maps that meet made one; what no maps meet in is refused."""
    larger = setting
    for step in (looked_up, read_out, met):
        larger = step(larger) or larger
    if larger is setting:
        return Refusal("A6", "no linear maps that meet", "two maps with nothing that acts between them")
    return larger
