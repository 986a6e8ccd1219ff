"""boundcalc: generalization bounds for Transformers with every constant explicit, re-verified by a small checker."""

from boundcalc.certificate import Certificate as Certificate
from boundcalc.checker import verify as verify
from boundcalc.engine.evaluate import BoundValue as BoundValue
from boundcalc.engine.evaluate import compare as compare
from boundcalc.engine.evaluate import evaluate as evaluate
from boundcalc.setting import Architecture as Architecture
from boundcalc.setting import Budget as Budget
from boundcalc.setting import Norms as Norms
from boundcalc.setting import Sample as Sample
from boundcalc.setting import Setting as Setting

__version__ = "0.1.0"
