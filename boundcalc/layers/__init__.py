"""Layers: of each its fields, weights, facts for proofs, and the forward pass over NumPy or torch, in one file."""

from boundcalc.layers.attention import Attention as Attention
from boundcalc.layers.attention import Normaliser as Normaliser
from boundcalc.layers.base import Layer as Layer
from boundcalc.layers.base import Weight as Weight
from boundcalc.layers.base import register_layer as register_layer
from boundcalc.layers.embedding import Embedding as Embedding
from boundcalc.layers.layernorm import LayerNorm as LayerNorm
from boundcalc.layers.linear import GatedFeedForward as GatedFeedForward
from boundcalc.layers.linear import Linear as Linear
from boundcalc.layers.merged import Hidden as Hidden
from boundcalc.layers.merged import Lookup as Lookup
from boundcalc.layers.rows import Activation as Activation
from boundcalc.layers.rows import Ball as Ball
from boundcalc.layers.rows import Pool as Pool
from boundcalc.layers.rows import Residual as Residual
from boundcalc.layers.rows import SoftCap as SoftCap
