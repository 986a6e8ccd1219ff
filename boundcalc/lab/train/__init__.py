"""From training runs to measured gaps: tasks, models, a batched trainer, sweeps, a store, thresholds.

Importing this package imports neither torch nor joblib: modules that train import them when they are imported.
"""
