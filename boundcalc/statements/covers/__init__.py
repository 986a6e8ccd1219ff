"""T: covers of one linear map, one object per lemma; `LEMMAS` is the registry."""

from boundcalc.base.registry import Registry
from boundcalc.statements.covers.base import CoverLemma as CoverLemma
from boundcalc.statements.covers.base import Params as Params
from boundcalc.statements.covers.laws import MatrixStudent, StudentColumns
from boundcalc.statements.covers.lemmas import (
    Gain,
    LowRank,
    MatrixPerceptron,
    Maurey,
    Offset,
    Perceptron,
    PublishedPerceptron,
    Table,
    Volumetric,
)

_COUNTED = (Perceptron(), MatrixPerceptron())
_UNIFORM = (Maurey(), Volumetric(), LowRank(), Offset(), Gain(), Table(), StudentColumns(), MatrixStudent())
LEMMAS: Registry[CoverLemma] = Registry("lemma", (*_COUNTED, *_UNIFORM, PublishedPerceptron()))
"""Every covering lemma by name; `register` adds one, `boundcalc.testing.check_lemma` tries its laws."""

ALWAYS = frozenset({"T8", "T9", "T10"})
"""Offsets, gains and tables have only these covers: every policy has them."""

REFINING = ("T4", "T8", "T9", "T10")
"""Covers of the ball of a target's own metric, in which the residual of any uniform cover lies."""

COUNTING = frozenset(lemma.name for lemma in _COUNTED)
"""The covers that count points, and so depend on T through a logarithm: those of the closed forms."""

CENTRES = frozenset({"T13", "T14"})
"""Covers by random centres of a chosen law."""
