"""How a model can be trained, and the defaults: the same on the command line and in sweep files."""

from __future__ import annotations

OPTIMISERS = ("adam", "adamw", "sgd")
PRECISIONS = ("float32", "float64")
DEVICES = ("cpu", "cuda", "mps")

OPTIMISER = "adam"
LR = 1e-3
WEIGHT_DECAY = 0.0
BATCH = 16
STEPS = 4000
CURVE_EVERY = 0
PRECISION = "float32"
N_TEST = 2048
