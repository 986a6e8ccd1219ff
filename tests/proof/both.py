"""What both checkers make of a certificate that was changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.proof.certificate import Certificate, Choice, Cover
from boundcalc.proof.checker import check
from tests.proof import alone

Place = tuple[Any, ...]
GONE = object()


def places(data: Any, path: Place = ()) -> Iterator[Place]:
    """Where every value of a document is: the document itself, then its fields and items."""
    yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(value, (*path, key))


def at(data: Any, path: Place) -> Any:
    """The value at a place."""
    for key in path:
        data = data[key]
    return data


def put(data: Any, path: Place, value: Any = GONE) -> Any:
    """A copy of a document with another value at a place, or without it."""
    changed = copy.deepcopy(data)
    *above, key = path
    if value is GONE:
        del at(changed, tuple(above))[key]
    else:
        at(changed, tuple(above))[key] = copy.deepcopy(value)
    return changed


def claiming(certificate: Certificate, levels: int | None = None) -> dict[str, Any]:
    """The file of a certificate, perhaps of its first levels alone, whose claims anything fulfils."""
    data: dict[str, Any] = certificate.to_json() | {"log_value": 1e6, "nats": 1e6}
    data["levels"] = [level | {"log_count": 1e6} for level in data["levels"][:levels]]
    return copy.deepcopy(data)


def refusals(certificate: Certificate) -> list[str]:
    """What both checkers say against a certificate."""
    found: list[str] = []
    for checker in (check, alone.log_value):
        with pytest.raises(CertificateError) as error:
            checker(certificate)
        found.append(str(error.value))
    return found


def with_choices(
    certificate: Certificate, index: int, key: str, choices: Sequence[Choice], log_eps: float | None = None
) -> Certificate:
    """With other choices, or another accuracy, of one piece at one level."""
    levels = list(certificate.levels)
    cover = levels[index].covers[key]
    covers = {**levels[index].covers, key: Cover(cover.log_eps if log_eps is None else log_eps, tuple(choices))}
    levels[index] = replace(levels[index], covers=covers)
    return replace(certificate, levels=tuple(levels))
