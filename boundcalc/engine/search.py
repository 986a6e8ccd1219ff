"""The search for the least bound a policy allows: certificates, to be checked. Nothing here is trusted."""

from __future__ import annotations

from collections.abc import Iterator

from boundcalc.engine.gaps import gaps, glance
from boundcalc.engine.ground import Found, Ground
from boundcalc.engine.links import Link, Needed, best_link, needed
from boundcalc.engine.risks import risks


class Search(Ground):
    """Searches one setting under one policy, for the gap and for the risk."""

    def gaps(self, only: str | None = None) -> Iterator[Found]:
        """Candidate certificates for the gap; perhaps of one strategy alone."""
        return gaps(self, only)

    def risks(self, only: str | None = None) -> Iterator[Found]:
        """Candidate certificates for the risk at the assumed margin training error; perhaps of one strategy alone."""
        return risks(self, only)

    def glance(self) -> Found | None:
        """A gap certificate that is found quickly and need not be the least; None where there is none."""
        return glance(self)

    def best_link(self) -> Link | None:
        """The one link that needs the fewest samples to bring the gap below 1."""
        return best_link(self)

    def first_link(self) -> Needed | None:
        """The cover and the number of samples by which one link would bring the gap below 1."""
        return needed(self)
