"""What `boundcalc latent` shows of pairs in a file: the array, what X3k supposes of it, a row for each query."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_text
from boundcalc.base.rounding import down, short


def read_array(path: Path) -> Any:
    """The array in a .npy file, or in a .csv file of numbers."""
    import numpy as np

    text = "" if path.suffix == ".npy" else read_text(path, more="write the array as .npy")
    if path.suffix != ".npy" and not text.strip():
        raise InvalidSetting(f"{path} is empty: give one row per line, numbers separated by commas")
    try:
        array = np.load(path) if path.suffix == ".npy" else np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2)
    except (ValueError, EOFError) as error:
        raise InvalidSetting(f"{path} is not an array of numbers (.npy, or .csv with commas): {error}") from None
    if getattr(array, "dtype", np.dtype(object)).kind not in "biuf":
        raise InvalidSetting(f"{path} must hold real numbers, got {getattr(array, 'dtype', type(array).__name__)}")
    if not np.isfinite(array).all():
        raise InvalidSetting(f"{path} must hold finite numbers, but {int((~np.isfinite(array)).sum())} are not")
    return array.astype(float)


def refuse_empty_premise(keys: Any, values: Any, kernel: Any, noise: float, norm: float) -> None:
    """Refuse X3k where the pairs themselves show that no conditional mean is as supposed."""
    from boundcalc.lab.latent.premise import least_norm

    for name, size in (("--value-noise", noise), ("--rkhs-norm", norm)):
        validate.positive(name, size, zero=True)
    least = least_norm(keys, values, kernel, noise)
    within = f"within --value-noise {short(noise)} of these values"
    if math.isinf(least):
        raise InvalidSetting(f"X3k has an empty premise: no function in the {kernel.name} kernel's space is {within}")
    if least > norm:
        raise InvalidSetting(
            f"X3k has an empty premise: means {within} have a norm of at least {down(least)} in the {kernel.name} "
            f"kernel's space, got --rkhs-norm {short(norm)}; raise one of the two"
        )


def attended(
    queries: Any,
    keys: Any,
    values: Any,
    kernel: Any,
    ridge: float,
    taus: tuple[float, ...],
    noise: float | None,
    norm: float | None,
    delta: float,
) -> Iterator[dict[str, Any]]:
    """A row for each query and attention: the value, the posterior's deviation, and what X3k is made of."""
    import numpy as np

    from boundcalc.lab.latent.attention import attend, linear_weights, power_function, softmax_weights
    from boundcalc.lab.latent.bounds import key_bound

    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
        posterior = attend(queries, keys, None, lam=ridge, kernel=kernel)
        prior = kernel.diagonal(queries)
    deviations = np.sqrt(posterior.variance / np.where(prior > 0, prior, 1.0))
    weights: Mapping[str, Any] = {
        "CME": posterior.mean,
        **{f"softmax tau={short(tau)}": softmax_weights(queries, keys, tau) for tau in taus},
        "linear": linear_weights(queries, keys),
    }
    missed = {name: power_function(queries, keys, alpha, kernel) for name, alpha in weights.items()}
    names = [f"value {j + 1}" for j in range(values.shape[1])] if values.shape[1] > 1 else ["value"]
    for i in range(len(queries)):
        for name, alpha in weights.items():
            size, power = float(np.linalg.norm(alpha[i])), float(missed[name][i])
            row = {"query": i + 1, "attention": name, **dict(zip(names, (alpha[i] @ values).tolist(), strict=True))}
            row |= {"deviation": float(deviations[i]) if name == "CME" else None, "|alpha|": size, "P(q)": power}
            row["X3k"] = None
            if noise is not None and norm is not None:
                above = size * (1 + len(alpha[i]) * sys.float_info.epsilon)
                row["X3k"] = key_bound(above, power, noise=noise, norm=norm, delta=delta).value
                if math.isinf(row["X3k"]):
                    raise InvalidSetting(
                        f"X3k is infinite at --value-noise {short(noise)} and --rkhs-norm {short(norm)}"
                    )
            yield row
