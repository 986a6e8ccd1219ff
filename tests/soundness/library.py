"""The library's values under the names of the second implementation, so that one attack is run against both.

What the library does not state (sharper or looser forms that only the second implementation has) is the latter's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from boundcalc.base.numbers import FLOAT
from boundcalc.setting import Budget
from boundcalc.statements.layers.activation import ACTIVATION_LIPSCHITZ
from tests.oracle import compose_mp, layers_mp
from tests.statements.inputs import compute


class _Beside:
    """Falls back on a module of the second implementation."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class LibraryLayers(_Beside):
    """L and S."""

    def l1_constant(self) -> float:
        return compute("L1")(FLOAT, 1.0)

    def l2_normaliser(self, name: str, *rest: float) -> tuple[float, float]:
        if rest:
            return self._module.l2_normaliser(name, *rest)
        found = compute("L2")(FLOAT, {"softmax_plus_one": "softmax1"}.get(name, name), 1.0, 1.0)
        return found["c"], found["mu"]

    def _norm(
        self, gain: float, e: float, *, v: float = 0.0, d: int = 4, beta: float = 1e3, offset: float = 0.0
    ) -> Any:
        return compute("L5")(FLOAT, float(beta), d, float(gain), float(offset), float(e), float(v))

    def l5_lipschitz(self, gain: float, e: float) -> float:
        return self._norm(gain, e)["lipschitz"]

    def l5_clamped_lipschitz(self, gain: float, e: float, v: float) -> float:
        return self._norm(gain, e, v=v)["lipschitz"]

    def l5_radius(self, gain: float, e: float, d: int, beta: float, offset: float = 0.0) -> float:
        return self._norm(gain, e, d=d, beta=beta, offset=offset)["radius"]

    def _head(self, b: float, c_w: float, c_v: float, tau: float = 1.0) -> Any:
        return compute("L7")(FLOAT, float(b), float(c_w), float(c_v), normaliser="softmax", temperature=tau)

    def l7_lipschitz_sharp(self, b: float, c_w: float, c_v: float, tau: float = 1.0) -> float:
        return self._head(b, c_w, c_v, tau)["lipschitz"]

    def l7_score_sensitivity(self, b: float, c_v: float, eps_s: float) -> float:
        found = self._head(b, 1.0, c_v)
        return min(found["score sensitivity"] * eps_s, found["score cap"])

    def _gated(self, b: float, c1: float, c3: float, c2: float, slope: float) -> Any:
        name = next(name for name, known in ACTIVATION_LIPSCHITZ.items() if known >= slope - 1e-5)
        return compute("L9")(FLOAT, float(b), float(c1), float(c3), float(c2), activation=name)

    def l9_radius(self, b: float, c1: float, c3: float, c2: float) -> float:
        return self._gated(b, c1, c3, c2, 1.0)["radius"]

    def l9_lipschitz(self, b: float, c1: float, c3: float, c2: float, slope: float) -> float:
        return self._gated(b, c1, c3, c2, float(slope))["lipschitz"]

    def l9_sensitivities(self, b: float, c1: float, c3: float, c2: float, slope: float) -> tuple[float, float, float]:
        found = self._gated(b, c1, c3, c2, float(slope))
        return found["W_1 sensitivity"], found["W_3 sensitivity"], found["W_2 sensitivity"]

    def s4_score_error(self, b: float, c_q: float, c_k: float, eps_q: float, eps_k: float, d_head: int) -> float:
        found = compute("S4")(FLOAT, float(b), float(c_q), float(c_k), d_head=d_head)
        return found["score error per eps_Q"] * eps_q + found["score error per eps_K"] * eps_k


class LibraryComposition(_Beside):
    """A."""

    def a1_minimum(self, coefficients: Sequence[float], factors: Sequence[float], eps: float = 1.0) -> float:
        return compute("A1")(FLOAT, list(coefficients), list(factors)) / eps**2

    def a5_closure(self, given: Mapping[str, float], d: int, k: int, *, interpolate: bool = True) -> Any:
        if not interpolate:
            return self._module.a5_closure(given, d, k, interpolate=False)
        names = {"op": "op", "F": "fro", "21": "two_one", "11": "one_one", "rank": "rank"}
        limits: dict[str, Any] = {names[name]: value for name, value in given.items() if name in names}
        if len(limits) < len(given) or not set(limits) - {"rank"}:
            return self._module.a5_closure(given, d, k)
        least = 0.0  # computed norms may contradict each other in their last bit
        for name in ("op", "fro", "two_one", "one_one"):
            if name in limits:
                limits[name] = least = max(least, float(limits[name]))
        if "rank" in limits:
            limits["rank"] = int(limits["rank"])
        found = compute("A5")(FLOAT, Budget(**limits), d, k)
        return {name: found[mine] for name, mine in names.items()}


LAYERS = {"library": LibraryLayers(layers_mp), "second": layers_mp}
COMPOSITION = {"library": LibraryComposition(compose_mp), "second": compose_mp}
