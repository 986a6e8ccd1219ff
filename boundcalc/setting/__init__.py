"""What is to be bounded, as data: an architecture, its norm budgets and a sample. No mathematics here."""

from boundcalc.setting.architecture import Architecture as Architecture
from boundcalc.setting.attention import Attention as Attention
from boundcalc.setting.attention import Normaliser as Normaliser
from boundcalc.setting.feedforward import Activation as Activation
from boundcalc.setting.feedforward import GatedFeedForward as GatedFeedForward
from boundcalc.setting.hidden import Hidden as Hidden
from boundcalc.setting.layer import Layer as Layer
from boundcalc.setting.layer import Weight as Weight
from boundcalc.setting.layers import Ball as Ball
from boundcalc.setting.layers import Embedding as Embedding
from boundcalc.setting.layers import LayerNorm as LayerNorm
from boundcalc.setting.layers import Linear as Linear
from boundcalc.setting.layers import Pool as Pool
from boundcalc.setting.layers import Residual as Residual
from boundcalc.setting.layers import SoftCap as SoftCap
from boundcalc.setting.lookup import Lookup as Lookup
from boundcalc.setting.norms import Budget as Budget
from boundcalc.setting.norms import Norms as Norms
from boundcalc.setting.presets import PRESETS as PRESETS
from boundcalc.setting.presets import preset as preset
from boundcalc.setting.sample import Sample as Sample
from boundcalc.setting.setting import Setting as Setting
