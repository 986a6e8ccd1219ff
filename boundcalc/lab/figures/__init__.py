"""Figures: bounds next to measured runs along one axis."""
