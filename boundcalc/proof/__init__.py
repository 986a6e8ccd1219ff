"""Certificates and the checker that re-derives them; never imports the search."""
