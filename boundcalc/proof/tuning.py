"""The numbers of a proof by K2 in a certificate's file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from boundcalc.base.errors import CertificateError
from boundcalc.setting.validate import shown
from boundcalc.statements.comparison.series import Kernel
from boundcalc.statements.comparison.sharp import Strata, Tuning

_FIELDS = ("curvature", "split", "signs", "gaussian", "strata")


def tuning_to_json(tuning: Tuning) -> dict[str, Any]:
    """The JSON object of a tuning."""

    def kernel(each: Kernel | None) -> dict[str, Any] | None:
        return None if each is None else {"bound": each.bound, "weights": list(each.weights)}

    strata = [
        None if each is None else {"edges": list(each.edges), "stretch": list(each.stretch)} for each in tuning.strata
    ]
    return {
        "curvature": tuning.curvature,
        "split": tuning.split,
        "signs": kernel(tuning.signs),
        "gaussian": kernel(tuning.gaussian),
        "strata": strata,
    }


def tuning_from_json(data: object) -> Tuning:
    """A tuning from its JSON object, with every field and no other."""
    raw = _fields("tuning", data, _FIELDS)
    return Tuning(
        _number("curvature", raw["curvature"]),
        _number("split", raw["split"]),
        _kernel("signs", raw["signs"]),
        _kernel("gaussian", raw["gaussian"]),
        tuple(_strata(f"strata[{i}]", each) for i, each in enumerate(_list("strata", raw["strata"]))),
    )


def _kernel(where: str, data: object) -> Kernel | None:
    if data is None:
        return None
    raw = _fields(where, data, ("bound", "weights"))
    return Kernel(_number(f"{where}.bound", raw["bound"]), _numbers(f"{where}.weights", raw["weights"]))


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
