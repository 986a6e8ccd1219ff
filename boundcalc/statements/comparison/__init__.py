"""Theorem K: the gap of an attention network by Gaussian comparison, without covers, free of T and of the width.

`closed` is K in elementary functions, `sharp` is K2 with numbers that a search finds; docs/theory.md has both proofs.
Every function is written once, for floats and for intervals. Complexities are per sqrt(m): G of Gaussians over rows, R
of signs over examples.
"""
