"""Certificates of one trained predictor: what its statement says, the facts it rests on, and how they are checked.

Statements, certificates and `verify` need ball arithmetic alone. Learners bring what they train with.
"""

from boundcalc.predictors.gibbs import GIBBS as GIBBS
from boundcalc.predictors.methods import HELD_OUT as HELD_OUT
from boundcalc.predictors.methods import HOLDOUT as HOLDOUT  # the import registers what certificates may rest on
from boundcalc.predictors.methods import P2L as P2L
from boundcalc.predictors.norms import NORMS as NORMS
from boundcalc.predictors.occam import OCCAM as OCCAM
from boundcalc.predictors.pac_bayes import PAC_BAYES as PAC_BAYES
