"""A second checker, for the `edelman2022` preset alone: the value of a certificate in 50 digits.

Written from the statements (T1-T6, L1-L8, S1-S3, A0, A5, G0-G5, PUB) and the certificate's JSON; it shares no code with
the package. Side conditions are asserted, values are returned without rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.covers_mp import MP, log_ball, log_vol_21, log_vol_op

Real = Any
Json = Mapping[str, Any]

SLOPES = {"relu": 1, "tanh": 1, "identity": 1, "gelu": "1.12891", "silu": "1.09984"}
CLOSED_GHOSTS = 16
LEAST = 1e-300
"""Stands for a budget of 0."""


def num(x: Real) -> Real:
    return MP.mpf(x)


# ------------------------------------------------------------------------------------------ A5


@dataclass(frozen=True)
class Sizes:
    """Every norm of a d x k matrix."""

    d: int
    k: int
    op: Real
    fro: Real
    two_one: Real
    two_one_t: Real
    one_one: Real
    rank: int
    spectrum: tuple[Real, Real] | None


def sizes(given: Json, d: int, k: int, rank: int | None) -> Sizes:
    """A5, by iterating its inequalities until nothing changes."""
    r = min(x for x in (d, k, rank, given.get("rank")) if x is not None) or 1
    names = ("op", "F", "21", "21T", "11")
    v = {name: num(given[name] or LEAST) if given.get(name) is not None else MP.inf for name in names}
    p = total = None
    if given.get("Sp") is not None:
        p, total = num(given["Sp"][0]), num(given["Sp"][1])
        v["op"] = min(v["op"], total ** (1 / p))
    for _ in range(20):
        v["op"] = min(v["op"], v["F"])
        options = [v["21"], v["21T"], MP.sqrt(r) * v["op"], MP.sqrt(v["op"] * v["21"]), MP.sqrt(v["op"] * v["21T"])]
        v["F"] = min(v["F"], *options)
        if p is not None:
            v["F"] = min(v["F"], MP.sqrt(v["op"] ** (2 - p) * total))
        v["21"] = min(v["21"], v["11"], MP.sqrt(k) * v["F"])
        v["21T"] = min(v["21T"], v["11"], MP.sqrt(d) * v["F"])
        v["11"] = min(v["11"], MP.sqrt(d) * v["21"], MP.sqrt(k) * v["21T"])
    spectrum = None if p is None else (p, total)
    return Sizes(d, k, v["op"], v["F"], v["21"], v["21T"], v["11"], r, spectrum)


# ------------------------------------------------------------------------------------------ T


@dataclass(frozen=True)
class View:
    """One way to see a map: its kind, the radius of its points, their number per sample, and its norms."""

    kind: str
    radius: Real
    points: int
    norms: Sizes

    @property
    def columns(self) -> int:
        return self.norms.d if self.kind == "key" else self.norms.k

    @property
    def column_norms(self) -> Real:
        return self.norms.two_one_t if self.kind == "key" else self.norms.two_one


def integer_vectors(n: int, s: Real) -> Real:
    """log of the number of integer vectors with l1 norm at most s, by the least of three closed bounds."""
    if s == 0:
        return MP.mpf(0)
    n, s = num(n), num(s)
    plain = s * MP.log(2 * n + 1)
    factorial = s * MP.log(s) - s + MP.log(2 * MP.pi * s) / 2 + 1 / (12 * s + 1)  # Robbins
    roots = s / 2 * MP.log((2 * n + 1) ** 2 + (s - 1) * (2 * s - 1) / 3) - factorial
    return min(plain, roots, n * MP.asinh(s / n) + s * MP.asinh(n / s))


def centres(n: int, x: Real, t: Real, excess: Real = 0) -> Real:
    """T4r and kin: log(1 + z) <= log z + 1/z at z = (n log(1+2/(tx)) + R) e^R (1+1/((1-t)x))^n."""
    net = n * MP.log(1 + 2 / (t * x)) + excess
    tail = n * MP.log(1 + 1 / ((1 - t) * x)) + excess
    return MP.log(net) + tail + MP.exp(-tail) / net


def body(name: str, d: int, k: int) -> tuple[Real, Real]:
    """(lambda, R) of T4v and T4f."""
    q = min(d, k)
    scale = MP.sqrt(k * q) if name == "T4v" else MP.sqrt(q)
    volume = log_vol_21(d, k) if name == "T4v" else log_ball(d * k)
    return scale, d * k * MP.log(scale) + volume - log_vol_op(d, k)


def factors(view: View, y: Real, rank: Real, theta: Real) -> Real:
    """T5 at tolerance 1/y of the unit ball, random centres with t = 1/(2rd), 1/(2rk)."""
    if rank == 0:
        return MP.mpf(0)
    n1, n2 = rank * view.norms.d, rank * view.norms.k
    t, u = 1 / (2 * num(n1)), 1 / (2 * num(n2))
    x1 = num(theta) / y
    x2 = (1 / y - x1) / (1 + (1 - t) * x1)
    return centres(n1, x1, t) + centres(n2, x2, u)


def sparse_rounding(view: View, a: Real, lam: Real) -> Real:
    """T3, second form."""
    weights = 1 + 2 * MP.exp(-2 * lam) + 2 * MP.exp(-8 * lam / 3) / (1 - MP.exp(-lam))
    return lam * (a / 2 + 2) + view.norms.d * view.norms.k * MP.log(weights)


def budget(lemma: str, view: View) -> Real:
    norms = view.norms
    if lemma == "T1" or (lemma == "Tpub" and (view.kind == "score" or view.columns == 1)):
        return norms.fro
    if lemma in ("T2", "Tpub"):
        return view.column_norms
    return {"T3": norms.one_one, "T4v": norms.two_one, "T4f": norms.fro}.get(lemma, norms.op)


def log_count(choice: Json, view: View, eps: Real, samples: int, *, published: bool = False) -> Real:
    """The sharp cost of a choice at eps on so many samples."""
    lemma, params = choice["lemma"], {key: num(v) for key, v in choice.get("params", {}).items()}
    assert not (lemma == "Tpub" and not published)
    n, size = view.points * samples, view.norms.d * view.norms.k
    y = view.radius * budget(lemma, view) / eps
    a = y**2
    if lemma == "Tpub":
        columns = 1 if view.kind == "score" else view.columns
        return 36 * a * MP.log(2 * MP.ceil(4 * y + 2) * n * columns + 1)
    if y <= 1:
        return MP.mpf(0)
    if lemma == "T1":
        assert view.kind == "score" or view.columns == 1
        return integer_vectors(n, MP.ceil(a) - 1)
    if lemma == "T2":
        rho, k = params["rho"], view.columns
        assert rho > 1
        s = MP.ceil(rho * a) - 1
        if s == 0:
            return MP.mpf(0)
        active = min(num(k), s)
        coded = MP.log(rho / (rho - 1)) + MP.log(rho**2 * a / active)
        return integer_vectors(n * k, s) + active * min(coded, MP.log(MP.ceil(2 + MP.log(a) / MP.log(rho))))
    assert view.kind in ("map", "query")
    if lemma == "T3":
        whole = integer_vectors(size, max(num(1), MP.ceil(a / 2)))
        return min(whole, sparse_rounding(view, a, params["lam"]))
    if lemma == "T4":
        return size * MP.log(1 + 2 * y)
    if lemma == "T4r":
        return min(centres(size, 1 / y, params["t"]), size * MP.log(1 + 2 * y))
    if lemma in ("T4v", "T4f"):
        scale, excess = body(lemma, view.norms.d, view.norms.k)
        return min(centres(size, scale / y, params["t"], excess), size * MP.log(1 + 2 * y / scale) + excess)
    both = view.norms.d + view.norms.k
    if lemma == "T5":
        return min(factors(view, y, view.norms.rank, params["theta"]), view.norms.rank * both * MP.log(1 + 4 * y))
    assert lemma == "T6"
    assert view.norms.spectrum is not None
    p, total = view.norms.spectrum

    def kept(t: Real) -> Real:
        return min(num(view.norms.rank), MP.ceil(total * (view.radius / (t * eps)) ** p) - 1)

    t, half = params["t"], num(1) / 2
    drawn = factors(view, (y - t) / (1 - t), kept(t), num(float(view.norms.d / both)))
    return min(drawn, kept(half) * both * MP.log(1 + 4 * (y - half) / half))


def log_closed(choice: Json, view: View, eps: Real, samples: int) -> Real:
    """a times the closed form at a = 1, which is at least the closed form; T2 at rho = 1 + 1/log(2Nk+1)."""
    lemma, n, size = choice["lemma"], view.points * samples, view.norms.d * view.norms.k
    a = (view.radius * budget(lemma, view) / eps) ** 2
    if lemma == "T1":
        assert view.kind == "score" or view.columns == 1
        return a * MP.log(2 * num(n) + 1)
    if lemma == "T2":
        assert view.kind in ("map", "query", "key")
        wide = 2 * num(n) * view.columns + 1
        rho = 1 + 1 / MP.log(wide)
        return a * rho * MP.log(wide * rho**2 / (rho - 1))
    assert view.kind in ("map", "query")
    if lemma == "T3":
        return a * num(3) / 2 * MP.log(2 * size + 1)
    if lemma in ("T4", "T4r"):
        return a * size * MP.log(3)
    if lemma == "T5":
        assert view.norms.rank * (view.norms.d + view.norms.k) < size
        return a * view.norms.rank * (view.norms.d + view.norms.k) * MP.log(5)
    assert lemma in ("T4v", "T4f")
    scale, excess = body(lemma, view.norms.d, view.norms.k)
    return a * (size * MP.log(1 + 2 / scale) + excess)


# ------------------------------------------------------------------------------------------ A0


@dataclass
class Walk:
    """Radius, error, and log-count on the way through the network."""

    cert: Json
    samples: int
    radius: Real
    error: Real = 0
    count: Real = 0

    @property
    def closed(self) -> bool:
        return self.cert["strategy"] == "closed"

    @property
    def published(self) -> bool:
        return self.cert["strategy"] == "published"

    def spend(self, cover: Json, views: Sequence[View], heads: int, sensitivity: Real, cap: Real | None) -> Real:
        """Adds a piece's count; returns the error it leaves."""
        (choice,) = cover["choices"]
        eps = MP.exp(num(cover["log_eps"]))
        reach = views[0].radius * views[0].norms.op
        if choice["lemma"] == "zero":
            assert self.cert["strategy"] not in ("closed", "published")
            if eps >= reach:
                return sensitivity * eps if cap is None else min(cap, sensitivity * eps)
            assert cap is not None
            return cap
        view = views[choice["target"]]
        if self.closed or (self.published and choice["lemma"] != "Tpub"):
            self.count += heads * log_closed(choice, view, eps, self.samples)
        else:
            self.count += heads * log_count(choice, view, eps, self.samples, published=self.published)
        left = sensitivity * eps
        return left if cap is None or self.closed or self.published else min(left, cap)


def found(norms: Json, kind: str, block: int | None) -> Json:
    """The budget that counts for a matrix."""
    given = norms.get("budgets", {})
    for key in ([] if block is None else [f"{kind}[{block}]"]) + [kind]:
        if key in given:
            return given[key]
    return {"op": norms["C"], "21": norms["C"]}


def walk(cert: Json, covers: Json | None, samples: int) -> Walk:
    """The network of the preset, forward: heads, ball, activation, W_1, ball; then the read-out of one row."""
    arch = cert["setting"]["architecture"]
    norms = cert["setting"]["norms"]
    heads, d, t, slope = arch["heads"], arch["d"], arch["seq_len"], num(SLOPES[arch["activation"]])
    at = Walk(cert, samples, num(arch["input_radius"]))
    blank = {"log_eps": 0, "choices": [{"lemma": "zero"}]}
    for block in range(arch["depth"]):
        last = block == arch["depth"] - 1
        rows = 1 if last and arch["readout"] == "cls" else t
        w = sizes(found(norms, "W_QK", block), d, d, arch["d_head"])
        v = sizes(found(norms, "W_V", block), d, d, None)
        out = sizes(found(norms, "W_1", block), d, d, None)
        b = at.radius
        kap = b**2 * w.op
        lip = v.op * (1 + 4 * kap if at.published else kap + MP.sqrt(1 + kap**2))
        error = heads * lip * at.error
        scores = [View("score", b**2, rows * t, w), View("query", b**2, rows, w), View("key", b**2, t, w)]
        if covers is not None:
            steep = heads * b * v.op * (2 if at.published else 1)
            error += at.spend(covers.get(f"W_QK[{block}]", blank), scores, heads, steep, heads * 2 * b * v.op)
            error += at.spend(covers.get(f"W_V[{block}]", blank), [View("map", b, rows, v)], heads, num(heads), None)
        b = min(num(1), heads * b * v.op)
        error = slope * error * out.op
        if covers is not None:
            error += at.spend(covers.get(f"W_1[{block}]", blank), [View("map", b, rows, out)], 1, num(1), None)
        at.radius, at.error = min(num(1), b * out.op), error
    w = sizes(found(norms, "readout", None), d, arch["classes"], None)
    at.error = at.error * w.op
    if covers is not None:
        at.error += at.spend(covers["readout"], [View("map", at.radius, 1, w)], 1, num(1), None)
    at.radius = at.radius * w.op
    return at


# ------------------------------------------------------------------------------------------ G


def value(cert: Json) -> Real:
    """The value of a certificate of the preset; fails an assertion where a side condition does."""
    cert = {**cert, **cert["strategy"], "strategy": cert["strategy"]["name"]}
    arch, sample = cert["setting"]["architecture"], cert["setting"]["sample"]
    m, q = sample["n_train"], num(sample["train_error"])
    strategy, alpha = cert["strategy"], cert.get("alpha", 1)
    log_inverse = -MP.log(num(sample["delta"]))
    lip = (MP.sqrt(2) if arch["classes"] > 1 else num(1)) / num(sample["margin"])
    if sample["lipschitz"] is not None:
        lip = num(sample["lipschitz"])
    samples = m * (1 + CLOSED_GHOSTS) if strategy == "closed" else m
    if strategy.startswith("ghost"):
        samples = m * (1 + alpha)
    scales, counts = [], []
    for level in cert["levels"]:
        at = walk(cert, level["covers"], samples)
        scales.append(MP.exp(num(level["log_scale"])))
        assert lip * at.error <= scales[-1]
        counts.append(at.count)
    deviation = MP.sqrt(log_inverse / (2 * num(m)))
    if strategy in ("chain", "ghost-chain", "uniform-chain"):
        first = min(num(1) / 2, lip * walk(cert, None, m).radius)
        factor = {"chain": num(2), "ghost-chain": 1 + 1 / num(alpha), "uniform-chain": num(1)}[strategy]
        return chained([first, *scales], counts, factor, m) + deviation
    (scale,), (count,) = scales, counts
    if strategy == "uniform-single":
        return 2 * scale + MP.sqrt((count + log_inverse) / (2 * num(m)))
    if strategy == "closed":
        k = (num(1) + num(1) / CLOSED_GHOSTS) / 2 * MP.e * MP.sqrt(2 * count * scale**2 / m)
        return 2 * k * (num("1.0853") + max(num(0), MP.log(1 / (2 * k)))) + deviation
    if strategy == "published":
        k = MP.sqrt(count * scale**2 / m)
        assert scale <= 3 * k
        complexity = 12 * k * (1 + max(num(0), MP.log(1 / (6 * k))))
        return 2 * complexity + 3 * MP.sqrt((log_inverse + MP.log(2)) / (2 * num(m)))
    assert sample["lipschitz"] is None
    assert scale <= num(1) / 2
    return risk(strategy, q, count, log_inverse, m, alpha, cert.get("mu"))


def chained(scales: Sequence[Real], counts: Sequence[Real], factor: Real, m: int) -> Real:
    """2 e_J + factor sum e_{j-1} sqrt(2 log N_j/m), counts made monotone."""
    links = num(0)
    for j, coarse in enumerate(scales[:-1]):
        assert scales[j + 1] <= coarse * (1 + num("1e-30"))
        links += coarse * MP.sqrt(2 * min(counts[j:]) / m)
    return 2 * scales[-1] + factor * links


def kl_inverse(q: Real, c: Real, mu: Real | None) -> Real:
    """Above sup{p : kl(q|p) <= c}."""
    if mu is None:
        assert q == 0
        return 1 - MP.exp(-c)
    return (1 - MP.exp(-num(mu) * q - c)) / (1 - MP.exp(-num(mu)))


def risk(strategy: str, q: Real, count: Real, log_inverse: Real, m: int, alpha: int, mu: Real | None) -> Real:
    """G3, G4, G5."""
    if strategy == "uniform-margin":
        return kl_inverse(q, (count + log_inverse) / m, mu)
    c = (count + MP.log(2) + log_inverse) / m
    if strategy == "ghost-realizable":
        assert q == 0
        errors = MP.ceil(c * m / MP.log(1 + 1 / num(alpha)))
        return min(errors, MP.ceil((1 + alpha) * m * (1 - MP.exp(-c)))) / (num(alpha) * m)
    assert strategy == "ghost"

    def objective(x: Real) -> Real:
        return ((1 + alpha) * kl_inverse(x, c, mu) - x + 1 / num(m)) / alpha

    best = num(0)
    if mu is not None:  # where the concave objective is stationary
        best = (MP.log((1 + alpha) * num(mu) / (1 - MP.exp(-num(mu)))) - c) / num(mu)
    return objective(max(num(0), min(q, best)))
