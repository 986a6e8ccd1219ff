"""The proof steps: covers (T), layers (L), composition (A), gaps (G), budgets after the fact (P1)."""
