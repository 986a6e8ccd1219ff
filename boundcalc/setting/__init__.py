"""What is to be bounded, as data: an architecture, its norm budgets and a sample. No mathematics here."""

from boundcalc.layers.activation import Activation as Activation
from boundcalc.layers.attention import Attention as Attention
from boundcalc.layers.ball import Ball as Ball
from boundcalc.layers.base import Layer as Layer
from boundcalc.layers.base import Weight as Weight
from boundcalc.layers.embedding import Embedding as Embedding
from boundcalc.layers.gated import GatedFeedForward as GatedFeedForward
from boundcalc.layers.hidden import Hidden as Hidden
from boundcalc.layers.layernorm import LayerNorm as LayerNorm
from boundcalc.layers.linear import Linear as Linear
from boundcalc.layers.lookup import Lookup as Lookup
from boundcalc.layers.normaliser import Normaliser as Normaliser
from boundcalc.layers.pool import Pool as Pool
from boundcalc.layers.residual import Residual as Residual
from boundcalc.layers.softcap import SoftCap as SoftCap
from boundcalc.setting.architecture import Architecture as Architecture
from boundcalc.setting.norms import Budget as Budget
from boundcalc.setting.norms import Norms as Norms
from boundcalc.setting.presets import PRESETS as PRESETS
from boundcalc.setting.presets import preset as preset
from boundcalc.setting.sample import Sample as Sample
from boundcalc.setting.setting import Setting as Setting
