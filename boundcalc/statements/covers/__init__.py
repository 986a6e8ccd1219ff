"""T: covers of one linear map, one object per lemma; `LEMMAS` is the registry."""

from boundcalc.base.registry import Registry
from boundcalc.statements.covers.base import CoverLemma as CoverLemma
from boundcalc.statements.covers.base import Params as Params
from boundcalc.statements.covers.base import Power as Power
from boundcalc.statements.covers.base import Profile as Profile
from boundcalc.statements.covers.base import Volume as Volume
from boundcalc.statements.covers.base import lattice as lattice
from boundcalc.statements.covers.base import random_cover as random_cover
from boundcalc.statements.covers.centres import Centres as Centres
from boundcalc.statements.covers.centres import Gaussian, MatrixStudent, StudentColumns
from boundcalc.statements.covers.empirical import Counting as Counting
from boundcalc.statements.covers.empirical import MatrixPerceptron as MatrixPerceptron
from boundcalc.statements.covers.empirical import Perceptron as Perceptron
from boundcalc.statements.covers.empirical import PublishedPerceptron
from boundcalc.statements.covers.uniform import (
    ColumnBody,
    FrobeniusBody,
    LowRank,
    Maurey,
    RandomCover,
    Schatten,
    Volumetric,
)
from boundcalc.statements.covers.vectors import Gain, Offset, Table

T1, T2, T3 = Perceptron(), MatrixPerceptron(), Maurey()
T4, T4R, T4V, T4F = Volumetric(), RandomCover(), ColumnBody(), FrobeniusBody()
T5, T6, T8, T9, T10 = LowRank(), Schatten(), Offset(), Gain(), Table()
T12, T13, T14 = Gaussian(), StudentColumns(), MatrixStudent()
TPUB = PublishedPerceptron()

LEMMAS: Registry[CoverLemma] = Registry(
    "lemma",
    (T1, T2, T3, T4, T4R, T4V, T4F, T5, T6, T8, T9, T10, T12, T13, T14, TPUB),
)
"""Every covering lemma by name; `register` adds one, `boundcalc.testing.check_lemma` tries its laws."""

ALWAYS = frozenset({"T8", "T9", "T10"})
"""Offsets, gains and tables have only these covers: every policy has them."""

REFINING = ("T4r", "T8", "T9", "T10")
"""Covers of the ball of a target's own metric, in which the residual of any uniform cover lies."""

CLOSED = (T1, T2, T8, T9, T10)
"""The covers of the closed forms."""


def family(of: str) -> frozenset[str]:
    """The names of the lemmas of a family."""
    return frozenset(name for name, lemma in LEMMAS.items() if lemma.family == of)


COUNTING = family(Counting.family)
"""The covers that count points, and so depend on T through a logarithm."""
