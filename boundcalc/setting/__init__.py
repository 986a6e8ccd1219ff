"""What is to be bounded, as data: an architecture, its norm budgets and a sample. No mathematics here."""

from boundcalc.layers import *  # noqa: F403 (the layers by name)
from boundcalc.setting._architecture import PRESETS as PRESETS
from boundcalc.setting._architecture import Architecture as Architecture
from boundcalc.setting.norms import Budget as Budget
from boundcalc.setting.norms import Norms as Norms
from boundcalc.setting.setting import Sample as Sample
from boundcalc.setting.setting import Setting as Setting
