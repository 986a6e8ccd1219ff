"""Laws of families of checkpoints: every tensor has a place, and every norm is that of the map it names."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints import Audit, audit
from boundcalc.checkpoints.families import FAMILIES, Family
from boundcalc.engine.evaluate import compare
from boundcalc.norms.matrix import Measured
from boundcalc.proof.checker import verify
from boundcalc.setting import Sample, Setting
from boundcalc.testing._judge import Cases, Complaint, judge
from tests.proof import alone

Array = NDArray[Any]
_CLOSE = 1e-9


@dataclass(frozen=True)
class FamilyExample:
    """A small model as its library saves it.

    Attributes:
        tensors: by name.
        config: its config.json.
        maps: maps x -> x W it computes, by their key in an audit ("W_V[0,1]", "W_1[0]", "readout"): put together by
            hand, or those that a forward check runs.
    """

    tensors: Mapping[str, Array]
    config: Mapping[str, Any]
    maps: Mapping[str, Array]

    def __str__(self) -> str:
        return f"{len(self.tensors)} tensors, {self.config.get('model_type', 'no model_type')}"

    def but(self, *, without: str = "", more: Mapping[str, Array] | None = None, **config: Any) -> FamilyExample:
        """Another model: without a tensor, with more of them, or with other fields of its configuration."""
        tensors = {name: array for name, array in self.tensors.items() if name != without} | dict(more or {})
        return FamilyExample(tensors, {**self.config, **config}, self.maps)


def _audit(family: Family, at: FamilyExample) -> Audit:
    with tempfile.TemporaryDirectory() as folder:
        save_file({name: np.ascontiguousarray(t) for name, t in at.tensors.items()}, Path(folder) / "m.safetensors")
        (Path(folder) / "config.json").write_text(json.dumps(dict(at.config)), encoding="utf-8")
        found = family.name if FAMILIES.get(family.name) is family else family  # by its name, as a user's file finds it
        return audit(Path(folder) / "m.safetensors", family=found)


def every_tensor_has_a_place(family: Family, at: FamilyExample) -> str | None:
    """What is used and what is not, with a reason, come to all that the file has."""
    account = _audit(family, at).account
    if account.unknown:
        return f"{account.unknown[0]!r} has no place"
    if not account.balanced:
        return f"{account.used} numbers are used, {account.lowered} are bounded, {account.shared} are shared"
    silent = [line.tensor for line in account.lines if (line.unused or not line.used) and not line.reason]
    return f"{silent[0]!r} is not used, and nothing says why" if silent else None


def norms_are_those_of_the_maps(family: Family, at: FamilyExample) -> str | None:
    """Every map has the norms that the audit finds."""
    return misfit(_audit(family, at).measured, at.maps)


def misfit(measured: Mapping[str, Measured], maps: Mapping[str, Array]) -> str | None:
    """The first map whose norms are not those that were measured."""
    for key, w in maps.items():
        if key not in measured:
            return f"no weight is called {key!r}"
        if measured[key].shape != w.shape:
            return f"{key} has shape {measured[key].shape}, the map {w.shape}"
        said = {name: getattr(measured[key], name) for name in _norms_of(w)}
        if not any(got is not None for got in said.values()):
            return f"{key} has none of the norms {', '.join(said)}"
        for name, size in _norms_of(w).items():
            got = said[name]
            if got is not None and not size * (1 - _CLOSE) <= got <= size * (1 + 1e-6):
                return f"{key} has {name} {got!r}, the map {size!r}"
    return None


def _norms_of(w: Array) -> dict[str, float]:
    """Of a map, or of a vector: an offset or gains."""
    found = {"op": float(np.linalg.norm(np.atleast_2d(w), 2)), "sup": float(np.abs(w).max())}
    if w.ndim == 1:
        return found
    columns, rows = np.linalg.norm(w, axis=0), np.linalg.norm(w, axis=1)
    found |= {"fro": float(np.linalg.norm(w)), "two_one": float(columns.sum())}
    return found | {"two_one_t": float(rows.sum()), "row": float(rows.max())}


def an_unknown_tensor_is_refused(family: Family, at: FamilyExample) -> str | None:
    """Weights that nothing reads would be left out of the bound."""
    try:
        account = _audit(family, at.but(more={"nobody.knows.this": np.ones((2, 3), np.float32)})).account
    except BoundcalcError as error:
        return None if "nobody.knows.this" in str(error) else f"it is refused without its name: {error}"
    return None if not account.balanced or account.unknown else "a tensor without a place goes unnoticed"


def a_missing_map_is_refused(family: Family, at: FamilyExample) -> str | None:
    """A file that lacks a matrix of a block is no model."""
    used = {line.tensor for line in _audit(family, at).account.lines if line.used}
    matrices = [n for n, array in at.tensors.items() if array.ndim > 1 and n in used and re.search(r"\.\d+\.", n)]
    for name in {matrices[1], matrices[len(matrices) // 2]}:
        try:
            _audit(family, at.but(without=name))
        except BoundcalcError:
            continue
        return f"without {name!r} it is audited all the same"
    return None


def its_bounds_are_checked(family: Family, at: FamilyExample) -> str | None:
    """The model lowers to a setting whose certificate both checkers confirm."""
    found = _audit(family, at)
    if found.missing:
        return None  # it ends in rows
    value = compare(Setting(found.architecture, found.norms(), Sample(n_train=10**9)), ["T-free"])[0]
    first, second = float(verify(value.certificate).log_value), float(alone.log_value(value.certificate))
    if abs(first - second) > 1e-12 * abs(second):
        return f"the checkers say {first!r} and {second!r}"
    return None if value.kind == "a_posteriori" else f"its bound is called {value.kind}"


LAWS = (
    every_tensor_has_a_place,
    norms_are_those_of_the_maps,
    an_unknown_tensor_is_refused,
    a_missing_map_is_refused,
    its_bounds_are_checked,
)


def _refuses(family: Family, what: FamilyExample) -> str | None:
    account = _audit(family, what).account
    return "; ".join(str(doubt) for doubt in account.doubts) or None


def check_family(family: Family, cases: Cases) -> list[Complaint]:
    """Tries every law on small models."""
    return judge(family, cases, LAWS, _refuses)
