"""From the text of a file to what is confirmed of it."""

from collections import namedtuple
from pathlib import Path
from typing import Any

from ._centres import multigamma
from ._certificate import Certificate, read_certificate
from ._numbers import DIGITS, MP, Real, Refused, demand, num
from ._strict import parse
from ._value import Found, follow

_TOLERANCE = num("1e-12")  # a claim is a rounded logarithm: it may fall short of the value by its last printed digits
_LEAST = num(-1e4)  # what is claimed as the log of a count of 0


Confirmed = namedtuple("Confirmed", "quantity log_value delta measured nats")
"""What is bounded, the log of the bound, its chance to fail, whether P1 was needed, and what that adds to
log(1/delta)."""


def confirm(text: str) -> Confirmed:
    """The value of a certificate's text, which must be at most what it claims; raises `Refused` otherwise."""
    return derive(parse(text), claims=True)


def derive(data: Any, *, claims: bool = False) -> Confirmed:
    """The value of a certificate's JSON value, not its claim."""
    try:
        certificate = read_certificate(data)
        result = follow(certificate)
        if claims:
            _hold(certificate, result, _again(certificate))
    except (ArithmeticError, ValueError, RecursionError) as error:
        raise Refused(f"its steps cannot be evaluated: {error}") from None
    delta, measured = certificate.setting.sample.delta, bool(certificate.looked.norms or certificate.looked.sample)
    return Confirmed("risk" if certificate.has("risk") else "gap", _log(result.value), delta, measured, result.nats)


def size() -> tuple[int, int]:
    """How many modules this checker has, and how many lines that are not blank."""
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py")]
    return len(texts), sum(bool(line.strip()) for text in texts for line in text.splitlines())


def _again(certificate: Certificate) -> Found:
    """The steps in more digits: what cancels between large numbers would differ."""
    try:
        MP.dps = DIGITS + 20
        multigamma.cache_clear()
        return follow(certificate)
    finally:
        MP.dps = DIGITS
        multigamma.cache_clear()


def _hold(certificate: Certificate, result: Found, again: Found) -> None:
    """Every claim is at least what was found, which more digits do not change."""
    drift = abs(_log(again.value) - _log(result.value)) if again.value > 0 else result.value
    demand(drift <= _TOLERANCE, f"{DIGITS} digits do not settle the value")
    claims = [(certificate.log_value, _log(result.value), "the claim")]
    claims.append((certificate.nats, result.nats, "the claimed cost of measured numbers"))
    for i, (level, count) in enumerate(zip(certificate.levels, result.counts, strict=True)):
        claims.append((level.log_count, max(_log(count), _LEAST), f"the log count of level {i + 1}"))
    for claimed, value, what in claims:
        said = f"{what} does not follow: {claimed:.12g} is claimed, the steps give {MP.nstr(value, 12)}"
        demand(value <= num(claimed) + _TOLERANCE * max(num(1), abs(value)), said)


def _log(value: Real) -> Real:
    return MP.log(value) if value > 0 else -MP.inf
