"""Checks for what users add: the laws of covering lemmas, layers and strategies, each tried on cases.

A check lists what is wrong, a complaint for every law that does not hold: `assert not check_lemma(lemma, cases)`.
"""

from boundcalc.testing._judge import Cases as Cases
from boundcalc.testing._judge import Complaint as Complaint
from boundcalc.testing._layers import LayerExample as LayerExample
from boundcalc.testing._layers import check_layer as check_layer
from boundcalc.testing._lemmas import LemmaExample as LemmaExample
from boundcalc.testing._lemmas import check_lemma as check_lemma
from boundcalc.testing._strategies import COINS as COINS
from boundcalc.testing._strategies import Coins as Coins
from boundcalc.testing._strategies import check_strategy as check_strategy
