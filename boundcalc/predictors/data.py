"""Examples as arrays, their digest and order, and what certificates record of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.npz import read_arrays
from boundcalc.base.output import writing
from boundcalc.base.schema import Size
from boundcalc.predictors.certificate import PredictorCertificate

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, slots=True)
class Data:
    """Examples: x[i] and its answer y[i]."""

    x: Array
    y: Array

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or not len(self.y):
            raise InvalidSetting(f"data need as many x as y, and at least one; got {len(self.x)} and {len(self.y)}")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Data({len(self)} examples, x {self.x.dtype}{list(self.x.shape[1:])}, y {self.y.dtype})"

    def take(self, places: Sequence[int] | Array) -> Data:
        """Some examples, in this order."""
        index = np.asarray(places, dtype=np.int64)
        return Data(self.x[index], self.y[index])

    @property
    def sha256(self) -> str:
        """Names the examples and their order by every bit of them."""
        return digest_of_arrays({"x": self.x, "y": self.y})

    @classmethod
    def load(cls, path: str) -> Data:
        """Arrays x and y of an .npz file; pickled objects are refused."""
        arrays = read_arrays(path)
        if missing := {"x", "y"} - set(arrays):
            raise InvalidSetting(f"{path} has no array {sorted(missing)[0]!r}: it has {list(arrays)}")
        return cls(arrays["x"], arrays["y"])

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write them as an .npz file; `force` replaces a file there that this did not write."""
        with writing(path, force=force) as part, part.open("wb") as file:
            np.savez(file, x=self.x, y=self.y, made_by=np.array("boundcalc"))


def digest_of_arrays(arrays: Mapping[str, Array]) -> str:
    """Sha256 of names, types, shapes and bits."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {value.dtype.str} {value.shape} ".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def fixed_order(count: int) -> Array:
    """The one permutation of so many examples: prefixes are cut from it, and places in it break ties.

    It has no seed to choose: an order chosen by looking at the examples would be a choice that no share of delta
    covers.
    """
    return np.random.Generator(np.random.PCG64(0)).permutation(count)


def named(data: Any) -> dict[str, Any]:
    """Which examples these are, as certificates say it."""
    return {"sha256": data.sha256, "examples": len(data)}


def _digest(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise InvalidSetting(f"{name} must be a sha256 of 64 hexadecimal digits, got {value!r}")
    return value


Digest = Annotated[str, _digest]


@dataclass(frozen=True)
class Named:
    """Which examples a certificate is about."""

    sha256: Digest
    examples: Size


@dataclass(frozen=True)
class Evidence:
    """What a certificate says of its predictor: the examples, what answered them (all that determines it), weights."""

    data: Named
    recipe: Mapping[str, Any]
    weights: Digest


@dataclass(frozen=True)
class EvidenceHere(Evidence):
    """The same, with the environment of a predictor that was made here."""

    environment: Mapping[str, Any]


class Answers(Protocol):
    """What turns weights, or examples, into answers."""

    @property
    def recipe(self) -> Mapping[str, Any]:
        """All that determines it, as JSON."""
        ...

    @property
    def environment(self) -> Mapping[str, Any]:
        """What bit-equal answers also need, as JSON: versions, threads, the processor."""
        ...


def evidence_of(data: Any, by: Answers, **more: Any) -> dict[str, Any]:
    """The evidence of a certificate: the examples, what answered them, and what else its method needs."""
    return {"data": named(data), "recipe": by.recipe, **more, "environment": by.environment}


def refuse_other_examples(certificate: PredictorCertificate, data: Any) -> None:
    """Facts are established again on the examples that they are about."""
    if dict(certificate.evidence["data"]) != named(data):
        raise CertificateError("these are not the examples of the certificate: their sha256 differs")


def errors_again(certificate: PredictorCertificate, data: Any, weights: str, scores: Callable[[Any], Array]) -> int:
    """The errors of its examples, counted again; refuses other examples, weights of another digest, another count."""
    refuse_other_examples(certificate, data)
    if weights != certificate.evidence["weights"]:
        raise CertificateError("the weights are not those of the certificate: their sha256 differs")
    errors = count_wrong(scores(data), len(data))
    if errors != certificate.facts["errors"]:
        raise CertificateError(f"{errors} errors are counted, {certificate.facts['errors']} are claimed")
    return errors


def of_another_count(certificate: PredictorCertificate) -> str | None:
    """What does not fit where all examples are tested on: as many are claimed as there are."""
    claimed, there = certificate.facts["n"], certificate.evidence["data"]["examples"]
    return None if claimed == there else f"{claimed} examples are claimed, the data have {there}"
