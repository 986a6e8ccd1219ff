"""What wants to know how far many trials are."""

from __future__ import annotations


class Progress:
    """Reports of progress; this one reports nothing."""

    def begin(self, done: int, total: int, what: str = "trials") -> None:
        """Before the first trial, or certificate."""

    def advance(self, trials: int, done: int, total: int, left: float | None) -> None:
        """Some trials are finished; seconds left, where they can be estimated."""

    def stop(self) -> None:
        """Nothing more will come."""
