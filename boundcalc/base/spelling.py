"""Spellings of names, accepted wherever the name is: letters of papers and words of code, British and American English."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LETTERS: Mapping[str, str] = {"T": "seq_len", "m": "n_train", "gamma": "margin"}
"""Letters of papers, and the fields of a setting they stand for: each is accepted wherever the other is."""

_AMERICAN = (("ormaliz", "ormalis"), ("ptimiz", "ptimis"), ("egulariz", "egularis"), ("nitializ", "nitialis"))
"""Stems as American English has them, and as names here do."""


def british(name: str) -> str:
    """A name as it is spelled here."""
    for american, here in _AMERICAN:
        name = name.replace(american, here)
    return name


def spelling(name: str, known: Iterable[str]) -> str:
    """The known name that a name is a spelling of; itself where it is none."""
    names = frozenset(known)
    if name in names:
        return name
    here = british(name)
    for letter, word in LETTERS.items():
        if here in (letter, word) and names & {letter, word}:
            return letter if letter in names else word
    return here if here in names else name
