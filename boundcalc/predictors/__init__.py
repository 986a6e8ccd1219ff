"""Certificates of one trained predictor: what its statement says, the facts it is based on, and how they are checked.

Statements, certificates and `verify` need ball arithmetic alone. Learners bring what they train with.
"""
