"""The proof steps: covers (T), layers (L), composition (A), gaps (G), budgets after the fact (P1)."""

STATEMENTS_VERSION = 1
"""Raised whenever a statement changes what it says: a certificate is checked only against the statements it names."""
