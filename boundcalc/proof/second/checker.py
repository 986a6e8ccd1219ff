"""From the text of a file to what is confirmed of it."""

from pathlib import Path
from typing import Any, NamedTuple

from .centres import multigamma
from .certificate import Certificate, read_certificate
from .numbers import MP, Real, Refused, demand, num
from .strict import parse
from .value import Found, follow

DIGITS = 50
_MORE = 20
_TOLERANCE = num("1e-12")
"""A claim is a rounded logarithm: it may fall short of the value by its last printed digits."""
_LEAST = -1e4
"""What is claimed as the log of a count of 0."""


class Confirmed(NamedTuple):
    """What follows from a certificate.

    Attributes:
        quantity: what is bounded ("gap" or "risk").
        log_value: log of the value, in 50 digits.
        delta: the chance with which it may fail.
        measured: whether numbers were looked at and paid for (P1).
        nats: what that adds to log(1/delta).
    """

    quantity: str
    log_value: Real
    delta: float
    measured: bool
    nats: Real


def confirm(text: str) -> Confirmed:
    """The value of a certificate's text, which must be at most what it claims; raises `Refused` otherwise."""
    return _confirmed(parse(text), claims=True)


def derive(data: Any) -> Confirmed:
    """The value of a certificate's JSON value, whatever it claims."""
    return _confirmed(data, claims=False)


def size() -> tuple[int, int]:
    """How many modules this checker has, and how many lines that are not blank."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    return len(texts), sum(bool(line.strip()) for text in texts for line in text.splitlines())


def _confirmed(data: Any, *, claims: bool) -> Confirmed:
    try:
        certificate = read_certificate(data)
        found = follow(certificate)
        if claims:
            _stable(certificate, found)
            _hold(certificate, found)
    except (ArithmeticError, ValueError, RecursionError) as error:
        raise Refused(f"its steps cannot be evaluated: {error}") from None
    about, sample = certificate.looked, certificate.setting.sample
    return Confirmed(
        certificate.kind.quantity,
        _log(found.value),
        sample.delta,
        about.norms is not None or bool(about.sample),
        found.nats,
    )


def _stable(certificate: Certificate, found: Found) -> None:
    """The steps again in more digits: what cancels between large numbers would differ."""
    try:
        _digits(DIGITS + _MORE)
        again = follow(certificate)
    finally:
        _digits(DIGITS)
    agree = abs(_log(again.value) - _log(found.value)) <= _TOLERANCE if again.value > 0 else found.value <= 0
    demand(agree, f"{DIGITS} digits do not settle the value")


def _digits(number: int) -> None:
    MP.dps = number
    multigamma.cache_clear()  # of other digits


def _hold(certificate: Certificate, found: Found) -> None:
    """Every claim is at least what was found."""
    claims = [(certificate.log_value, _log(found.value), "e^", "the claim")]
    claims.append((certificate.looked.nats, found.nats, "", "what is said to be paid for measured numbers"))
    for i, (level, count) in enumerate(zip(certificate.levels, found.counts, strict=True)):
        claims.append((level.log_count, max(_log(count), num(_LEAST)), "e^", f"the log count of level {i + 1}"))
    for claimed, value, power, what in claims:
        enough = value <= num(claimed) + _TOLERANCE * max(num(1), abs(value))
        demand(
            enough,
            f"{what} does not follow: {power}{claimed:.12g} is claimed, the steps give {power}{MP.nstr(value, 12)}",
        )


def _log(value: Real) -> Real:
    return MP.log(value) if value > 0 else -MP.inf
