"""Names that are not known: the one that was meant, and the letters of papers that stand for fields of a setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LETTERS: Mapping[str, str] = {"T": "seq_len", "m": "n_train", "gamma": "margin"}
"""Letters of papers, and the fields of a setting they stand for: each is accepted wherever the other is."""


def spelling(name: str, known: Iterable[str]) -> str:
    """The known name that a letter stands for, or the letter that a field's name stands for; else the name itself."""
    names = frozenset(known)
    if name not in names:
        for letter, word in LETTERS.items():
            if name in (letter, word):
                return next((each for each in (letter, word) if each in names), name)
    return name


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known name it is closest to."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
