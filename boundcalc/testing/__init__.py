"""Checks for what users add: the laws of covering lemmas, layers and strategies, each tried on cases.

A check returns a `Report`; `report.raise_if_broken()` lists every law that does not hold.
"""

from boundcalc.testing.layers import LayerExample as LayerExample
from boundcalc.testing.layers import check_layer as check_layer
from boundcalc.testing.lemmas import LemmaExample as LemmaExample
from boundcalc.testing.lemmas import check_lemma as check_lemma
from boundcalc.testing.report import Cases as Cases
from boundcalc.testing.report import Complaint as Complaint
from boundcalc.testing.report import LawBroken as LawBroken
from boundcalc.testing.report import Report as Report
from boundcalc.testing.strategies import COINS as COINS
from boundcalc.testing.strategies import Coins as Coins
from boundcalc.testing.strategies import check_strategy as check_strategy
