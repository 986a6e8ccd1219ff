"""Figures: bounds next to measured runs along one axis, and the overlay of all kinds of promises."""
