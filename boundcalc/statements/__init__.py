"""The proof steps: covers (T), noise (V), layers (L), composition (A), gaps (G), budgets after the fact."""

STATEMENTS_VERSION = 9
"""Raised whenever a statement changes what it says: a certificate is checked only against the statements it names."""
