"""G9, G10, G10r, G10f: predictors that learned from few picked examples and answer for all the others."""

from __future__ import annotations

from functools import lru_cache

from flint import arb

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import certainly_le, upper_float
from boundcalc.base.sources import Source
from boundcalc.base.statement import Statement
from boundcalc.predictors.statements.base import (
    ERRORS,
    Fact,
    Facts,
    N,
    PredictorStatement,
    count,
    positive_count,
    shares,
)
from boundcalc.predictors.statements.file import file_limit
from boundcalc.predictors.statements.joint import joint_limit
from boundcalc.predictors.tails import limit, rounded_up

PACCAGNAN2023 = Source(
    "paccagnan2023",
    "Dario Paccagnan, Marco C. Campi, Simone Garatti",
    "The Pick-to-Learn algorithm: empowering compression for tight generalization bounds and improved "
    "post-training performance",
    2023,
    "NeurIPS",
)

RUN = (
    "Fixed before the n examples: the learner (an ordered list of picks to a model; it may hold seeds, an initial "
    "model, anything computed from OTHER examples, such as a prefix), the key, the batch sizes (functions of the list "
    "of picks), tags for ties. A round appends the next examples outside the picks with the worst key; the key of an "
    "example looks at it, its tag, the model and the picks, never at other candidates."
)
"""What every statement about picks asks of the run."""

PICKS = Fact(count, "examples that were picked and learned from")


def _within(facts: Facts) -> str | None:
    picks, n = facts["picks"], facts["n"]
    if picks > n:
        return f"{picks} picks among {n} examples"
    if facts.get("errors", 0) > n - picks:
        return f"{facts['errors']} errors among the {n - picks} examples that were not picked"
    return None


@lru_cache(maxsize=4096)
def all_right_limit(picks: int, n: int, delta: float) -> float:
    """The root eps of (delta/n) sum_{j=k}^{n-1} C(j,k)/C(n,k) (1-eps)^-(n-j) = 1, rounded up."""
    if picks >= n:
        return 1.0

    def reaches(eps: float) -> bool:
        """Whether the sum, or a part of it, is certainly at least 1: all terms are positive."""
        rise = 1 / (1 - arb(eps))
        term = arb(delta) / n
        total = arb(0)
        for j in range(n - 1, picks - 1, -1):
            term = term * (j + 1 - picks) / (j + 1) * rise
            total = total + term
            if (n - j) % 64 == 0 and bool(total >= 1):
                return True
        return certainly_le(arb(1), total)

    return rounded_up(_all_right_guess(picks, n, delta), reaches, step=1e-9)


def _all_right_guess(picks: int, n: int, delta: float) -> float:
    def reaches(eps: float) -> bool:
        rise, term, total = 1 / (1 - eps), delta / n, 0.0
        for j in range(n - 1, picks - 1, -1):
            term *= (j + 1 - picks) / (j + 1) * rise
            total += term
            if total >= 1:
                return True
            if term < 1e-18 * total:
                break
        return False

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if reaches(middle):
            high = middle
        else:
            low = middle
    return high


G9 = PredictorStatement(
    Statement(
        "G9",
        "picks until all others are right",
        r"R\le\varepsilon:\quad\frac\delta n\sum_{j=k}^{n-1}\frac{\binom jk}{\binom nk}(1-\varepsilon)^{-(n-j)}=1",
        RUN
        + " Every wrong key precedes every right one (a least margin does, a largest cross entropy of three classes "
        "does not). The run stops as soon as all examples outside the picks are right; a run that was cut certifies 1.",
        "The final picks c(D) are U iff c(U) = U and c(U+z) = U for each other z. With phi(U) = P(c(U+z) != U), at least "
        "the risk, P(|c(z_1..z_j)| = k) = C(j,k) E[(1-phi)^(j-k); all k picked] for every j >= k. For phi above the root "
        "C(n,k)(1-phi)^(n-k) is at most delta/n times the sum of C(j,k)(1-phi)^(j-k), so the failures of all k come to "
        "at most delta/n times n probabilities' sums, each at most 1.",
        source=PACCAGNAN2023,
        compute=None,
    ),
    {"n": N, "picks": PICKS},
    lambda facts, delta: all_right_limit(facts["picks"], facts["n"], delta),
    _within,
)


def two_step_limit(errors: int, n: int, picks: int, delta: float) -> float:
    """G10: a + (1 - a) CP(e; n - k; delta/2), a = CP(k - 1; n; delta/2)."""
    if picks == 0:
        return limit(errors, n, arb(delta).log())
    if picks + errors >= n:
        return 1.0
    half = arb(delta / 2).log()
    grabbed, wrong = arb(limit(picks - 1, n, half)), arb(limit(errors, n - picks, half))
    return min(1.0, upper_float(grabbed + (1 - grabbed) * wrong))


_LAW = (
    "An example z is grabbed by a k-set U if the run on U+z picks it: a matter of z and U alone, and T(D) = U iff U grabs "
    "no other of D. With phi(U) = P(z grabbed), C(j,k) E(1-phi)^(j-k) = 1 for every j >= k, for exactly one k-subset is "
    "picked: the moments of the density k phi^(k-1). So phi of the picks is Beta(k, n-k+1) exactly. Given the picks, the "
    "others are independent draws of the law of examples not grabbed, e ~ Bin(n-k, q), and R <= phi + (1-phi) q."
)

G10 = PredictorStatement(
    Statement(
        "G10",
        "a fixed number of picks, in two steps",
        r"R\le a+(1-a)\,\mathrm{CP}(e;n-k;\tfrac\delta2),\qquad a=\mathrm{CP}(k-1;n;\tfrac\delta2)",
        RUN + " The number of picks k is fixed before the examples; picks are made even when all are right. Any number "
        "of errors may be left.",
        _LAW + " P(phi > a) = delta/2, P(q > CP) <= delta/2.",
        source=PACCAGNAN2023,
        compute=None,
    ),
    {"errors": ERRORS, "n": N, "picks": PICKS},
    lambda facts, delta: two_step_limit(facts["errors"], facts["n"], facts["picks"], delta),
    _within,
)


def _pairs(name: str, value: object) -> tuple[tuple[int, float], ...]:
    pairs = shares(name, value)
    if len({errors for errors, _ in pairs}) != len(pairs):
        raise CertificateError(f"{name} names a number of errors twice")
    return pairs


REFERENCES = Fact(_pairs, "numbers of errors the bound was made for, each with its share of delta, fixed beforehand")


def _referenced(facts: Facts) -> str | None:
    wrong = _within(facts)
    others = facts["n"] - facts["picks"]
    if wrong is None and others and any(errors >= others for errors, _ in facts["references"]):
        return f"a reference of {max(e for e, _ in facts['references'])} errors, but only {others} others"
    return wrong


G10R = PredictorStatement(
    Statement(
        "G10r",
        "a fixed number of picks, made for some numbers of errors",
        r"R\le\sup_{\varphi:\,d(\varphi)<1}\ \varphi+(1-\varphi)\,\mathrm{CP}(e;n-k;d(\varphi)),\quad d(\varphi)="
        r"\sum_rP\Big(\mathrm{Bin}\big(n-k,\tfrac{(B_r-\varphi)^+}{1-\varphi}\big)\le e_r\Big),\ B_r=\mathrm{CP}(k+e_r;n;"
        r"\delta_r);\qquad\text{one reference, }e=e_r:\ R\le\mathrm{CP}(k+e;n;\delta)",
        RUN + " The number of picks k and the references (e_r, delta_r), sum delta_r <= delta, are fixed before the "
        "examples; picks are made even when all are right.",
        _LAW + " Spend d(phi) on q, though phi is not seen: given the picks, R <= phi + (1-phi) CP(e; n-k; d(phi)) but "
        "for probability d(phi), and where d = 1 nothing is claimed; the supremum over phi is seen. In all, E d(phi) is "
        "spent. Put n uniform points on [0,1]: the k-th is phi in law, and given it the number of others up to B_r is "
        "Bin(n-k, (B_r-phi)/(1-phi)); so E of the r-th term is the probability of at most k+e_r points up to B_r, "
        "P(Bin(n, B_r) <= k+e_r) <= delta_r.",
        source=PACCAGNAN2023,
        compute=None,
    ),
    {"errors": ERRORS, "n": N, "picks": PICKS, "references": REFERENCES},
    lambda facts, delta: joint_limit(facts["errors"], facts["n"], facts["picks"], facts["references"], delta),
    _referenced,
)


def _in_file(facts: Facts) -> str | None:
    if facts["file"] <= facts["n"]:
        return f"{facts['n']} of {facts['file']} examples leave none to speak of"
    return _referenced(facts)


G10F = PredictorStatement(
    Statement(
        "G10f",
        "a fixed number of picks, a random part of a finite file",
        r"\#\{\text{wrong among the }M-n\text{ others}\}\le V-e,\quad V=\max_g\,g+\max\{w:P(\mathrm{Hyp}(M-k-g,w,n-k)\le e)"
        r">d(g)\};\qquad\text{one reference, }e=e_r:\ V=\max\{v:P(\mathrm{Hyp}(M,k+v,n)\le k+e)>\delta\}",
        "The n examples are a uniformly random part of a file of M (a prefix taken away from both); else as G10r. The "
        "risk is the share of errors on the M - n other examples of this file, nothing more.",
        "g(U), how many of the M-k others U grabs, takes each value g at C(k-1+g, k-1) sets U, for every learner: "
        "each n-subset has one set of picks, so the sum over U of C(M-k-g(U), n-k) is C(M, n) for every n, a triangular "
        "system. So g of the picks has the law of the k-th smallest of n random places among M, and given it the errors "
        "are hypergeometric. Then as G10r, with places for points.",
        source=PACCAGNAN2023,
        compute=None,
    ),
    {
        "errors": ERRORS,
        "n": N,
        "picks": PICKS,
        "file": Fact(positive_count, "examples of the file"),
        "references": REFERENCES,
    },
    lambda facts, delta: file_limit(
        facts["errors"], facts["n"], facts["picks"], facts["file"], facts["references"], delta
    ),
    _in_file,
    speaks_of="an example of the file that was not used",
)
