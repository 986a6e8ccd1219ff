"""T: covers of one linear map, one object per lemma; `LEMMAS` is the registry."""

from boundcalc.base.registry import Registry
from boundcalc.statements.covers.base import CoverLemma as CoverLemma
from boundcalc.statements.covers.base import Params as Params
from boundcalc.statements.covers.centres import Centres as Centres
from boundcalc.statements.covers.centres import MatrixStudent, StudentColumns
from boundcalc.statements.covers.empirical import Counting as Counting
from boundcalc.statements.covers.empirical import MatrixPerceptron as MatrixPerceptron
from boundcalc.statements.covers.empirical import Perceptron, PublishedPerceptron
from boundcalc.statements.covers.uniform import Gain, LowRank, Maurey, Offset, Table
from boundcalc.statements.covers.uniform import Volumetric as Volumetric

LEMMAS: Registry[CoverLemma] = Registry(
    "lemma",
    (
        Perceptron(),
        MatrixPerceptron(),
        Maurey(),
        Volumetric(),
        LowRank(),
        Offset(),
        Gain(),
        Table(),
        StudentColumns(),
        MatrixStudent(),
        PublishedPerceptron(),
    ),
)
"""Every covering lemma by name; `register` adds one, `boundcalc.testing.check_lemma` tries its laws."""

ALWAYS = frozenset({"T8", "T9", "T10"})
"""Offsets, gains and tables have only these covers: every policy has them."""

REFINING = ("T4", "T8", "T9", "T10")
"""Covers of the ball of a target's own metric, in which the residual of any uniform cover lies."""

COUNTING = frozenset(name for name, lemma in LEMMAS.items() if isinstance(lemma, Counting))
"""The covers that count points, and so depend on T through a logarithm: those of the closed forms."""
