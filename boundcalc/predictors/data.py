"""Examples as arrays, their digest and order, and what certificates record of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, Self

import numpy as np

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.npz import digest_of_arrays, read_arrays
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


def fixed_order(count: int) -> Array:
    """The one permutation of so many examples: prefixes are cut from it, and places in it break ties.

    It has no seed to choose: an order chosen by looking at the examples would be a choice that no share of delta
    covers.
    """
    return np.random.Generator(np.random.PCG64(0)).permutation(count)


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
    """What a certificate says of its predictor.

    Attributes:
        data: the examples.
        recipe: what answered them: all that determines it.
        weights: digest of the weights.
        environment: where it was made; empty where the predictor was given.
    """

    data: Named
    recipe: Mapping[str, Any]
    weights: Digest
    environment: Mapping[str, Any]

    @classmethod
    def of(cls, data: Any, by: Answers, weights: Mapping[str, Array], *more: Any) -> Self:
        """The evidence of examples, what answered them, its weights, and what else the method needs."""
        named = Named(data.sha256, len(data))
        return cls(named, by.recipe, digest_of_arrays(weights), by.environment, *more)


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


def refuse_other_examples(certificate: PredictorCertificate, data: Any) -> None:
    """Errors are counted again on the examples that they are of."""
    if certificate.evidence.data != Named(data.sha256, len(data)):
        raise CertificateError("these are not the examples of the certificate: their sha256 differs")


def errors_again(certificate: PredictorCertificate, data: Any, weights: str, scores: Callable[[Any], Array]) -> int:
    """The errors of its examples, counted again; refuses other examples, weights of another digest, another count."""
    refuse_other_examples(certificate, data)
    if weights != certificate.evidence.weights:
        raise CertificateError("the weights are not those of the certificate: their sha256 differs")
    errors = count_wrong(scores(data), len(data))
    if errors != certificate.errors:
        raise CertificateError(f"{errors} errors are counted, {certificate.errors} are claimed")
    return errors
