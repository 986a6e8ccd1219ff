"""Experiments: representation, latent variables, training, figures. The core never imports it."""
