"""Rules that a trained network provably follows (G15): their prefix code, the proof from the weights, and the search.

`code` prices rules, `check` proves (with `tables`, `heads`, `hidden`), `search` guesses and is not trusted.
"""
