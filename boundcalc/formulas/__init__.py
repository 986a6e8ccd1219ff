"""Formulas, closed forms, printers, derivations and the theorems of papers."""
