"""Attention as inference: exchangeable sequences, posteriors of their latent variable, and how attention gets there."""
