"""The numbers of a proof by K2 in a certificate's file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from boundcalc.base.errors import CertificateError
from boundcalc.setting.validate import shown
from boundcalc.statements.comparison.series import Kernel
from boundcalc.statements.comparison.sharp import Strata, Tuning

_FIELDS = ("curvature", "split", "kernel", "strata")


def tuning_to_json(tuning: Tuning) -> dict[str, Any]:
    """The JSON object of a tuning."""
    strata = [
        None if each is None else {"edges": list(each.edges), "stretch": list(each.stretch)} for each in tuning.strata
    ]
    return {
        "curvature": tuning.curvature,
        "split": tuning.split,
        "kernel": {"bound": tuning.kernel.bound, "weights": list(tuning.kernel.weights)},
        "strata": strata,
    }


def tuning_from_json(data: object) -> Tuning:
    """A tuning from its JSON object, with every field and no other."""
    raw = _fields("tuning", data, _FIELDS)
    kernel = _fields("kernel", raw["kernel"], ("bound", "weights"))
    return Tuning(
        _number("curvature", raw["curvature"]),
        _number("split", raw["split"]),
        Kernel(_number("kernel.bound", kernel["bound"]), _numbers("kernel.weights", kernel["weights"])),
        tuple(_strata(f"strata[{i}]", each) for i, each in enumerate(_list("strata", raw["strata"]))),
    )


def _strata(where: str, data: object) -> Strata | None:
    if data is None:
        return None
    raw = _fields(where, data, ("edges", "stretch"))
    return Strata(_numbers(f"{where}.edges", raw["edges"]), _numbers(f"{where}.stretch", raw["stretch"]))


def _fields(where: str, data: object, names: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or set(data) != set(names):
        raise CertificateError(f"{where} is an object with the fields {', '.join(names)}, got {shown(data)}")
    return data


def _list(where: str, data: object) -> list[object]:
    if not isinstance(data, list):
        raise CertificateError(f"{where} is a list, got {shown(data)}")
    return data


def _numbers(where: str, data: object) -> tuple[float, ...]:
    return tuple(_number(f"{where}[{i}]", each) for i, each in enumerate(_list(where, data)))


def _number(where: str, data: object) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float) or not 0 < data < math.inf:
        raise CertificateError(f"{where} is a number above 0, got {shown(data)}")
    return float(data)
