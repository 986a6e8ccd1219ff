"""Experiments on attention as inference: numbers with intervals, beside the bounds they must stay below."""
