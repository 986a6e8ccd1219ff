"""Wrong constants on purpose: each mutation of the package must be noticed by the tests of its row.

    python -m tests.mutations              # every row; the exit code is the number of mutations that survive
    python -m tests.mutations predictors   # rows whose file has this in its path

A mutation is applied to a copy of the repository. The tests of a row attack the statement: they draw or list worlds, or
build members of a class. A second copy of the formula is no such test.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutation(NamedTuple):
    """One wrong line.

    Attributes:
        file: below boundcalc/.
        what: it leaves out or changes.
        old: text that occurs once in the file.
        new: what takes its place.
        tests: arguments of pytest.
    """

    file: str
    what: str
    old: str
    new: str
    tests: str


_LAWS = "tests/laws/test_predictors.py -k test_laws"
_STATEMENTS = "tests/predictors/test_statements.py"
_RULES = "tests/predictors/rules"

_COVERS = "tests/soundness/test_cover_constructions.py"
_GAPS = "tests/soundness/test_gap_theorems.py"
_STRATEGIES = "tests/laws/test_strategies.py"
_FACTS = "tests/laws/test_layers.py -k test_laws"
_WHOLE = "tests/soundness/test_networks.py"
_HIDDEN = "tests/soundness/test_hidden.py"
_REFINED = "tests/soundness/test_refinement.py"
_NORMS = "tests/soundness/test_matrix_norms.py"
_NOISE = "tests/soundness/test_noise.py"
_CENTRES = "tests/soundness/test_centres.py"
_BOTH_LABELS = "tests/laws/test_both_labels.py"
_TWO_CHECKERS = "tests/proof/test_second_checker.py"
_READ = "tests/soundness/test_comparison.py -k text_of_the_theorem"
"""Values that a reader of the proof found without the code: at K's own slack no network of the class shows these."""
_COMPARED = "tests/soundness/test_comparison.py -k"
_FLOORS = "tests/soundness/test_floors.py -k"
_MEMBERS = f"{_FLOORS} members_are"
_AGREE = f"{_FLOORS} both_checkers"
_CONSTANTS = "tests/soundness/test_layer_constants.py"

ROWS = {
    "layers/merged.py": [
        ("V4 without 1/(2L)", "extra = 1 / (2 * lipschitz)", "extra = 0 * lipschitz", _HIDDEN),
        ("V4 with half the kinks", "ns.sqrt(k / (2 * ns.pi))", "ns.sqrt(k / (8 * ns.pi))", _HIDDEN),
        (
            "A7 with the values of one table",
            'if weight.role == "values"), list',
            'if weight.kind == "token_values"), list',
            "tests/laws/test_limits.py",
        ),
        ("A7 with half of what scores may move", "2 * radius, saturates=True", "radius, saturates=True", _FACTS),
    ],
    "statements/noises.py": [("V4 with one event", "return 2 * max(1,", "return 1 * max(1,", _HIDDEN)],
    "statements/weights.py": [
        ("A6 with a nuclear norm of |A| |B| / 1.2", "left.fro * right.fro)", "left.fro * right.fro / 1.2)", _NORMS),
        ("A5 without sqrt k", "columns = least(ns.sqrt(ns.number(k)) * fro, of", "columns = least(fro, of", _NORMS),
    ],
    "proof/_levels.py": [("G12 at half its ratio", "- arb(log_eps)).exp()", "- arb(log_eps)).exp() / 2", _REFINED)],
    "proof/second/_walk.py": [
        ("G12 at half its ratio, second checker", "- num(log_eps))", "- num(log_eps)) / 2", _REFINED)
    ],
    "statements/strategies/theorems.py": [
        ("G12 in any order", "ends[j + 1] ** 2 * count, ends[j] ** 2 *", "ends[j] * 0, ends[j] ** 2 *", _REFINED),
        ("G12 with scales that need not fall", "yield fine, coarse,", "yield fine * 0, coarse,", _REFINED),
        ("G13 with a bit less", "* ns.number(bits)", "* ns.number(bits - 1)", "tests/soundness/test_stored.py"),
        ("G2 with its residual once", 'Term("2 e_J", 2 * last', 'Term("2 e_J", last', _GAPS),
        ("G3 without delta", "= inputs.counts[0] + inputs.log_inverse_delta", "= inputs.counts[0]", _STRATEGIES),
    ],
    "proof/second/_value.py": [
        ("G12 in any order, second checker", "steep * scale**2 <= count * _ALMOST", "num(0) <= count", _REFINED),
        (
            "G12 with scales that need not fall, second checker",
            "all(fine < coarse for",
            "all(fine > 0 or coarse for",
            _REFINED,
        ),
    ],
    "proof/second/_posthoc.py": [("P1 with log 1.5 less, second checker", " + MP.log(num(3) / 2)", "", _TWO_CHECKERS)],
    "statements/covers/laws.py": [
        ("T13 with a majorant below the function", "LINE, BEND = 0.804743,", "LINE, BEND = 0.8040,", _CENTRES),
        ("T13 with a line far below the function", "LINE, BEND = 0.804743,", "LINE, BEND = 0.7,", _CENTRES),
        ("noise with more entropy than it has", "return 3 * step(a) - step(", "return 2 * step(a) - step(", _CENTRES),
    ],
    "statements/gap.py": [
        ("G11 with half the moment", "+ ns.sqrt(ns.pi * m / 2))", "+ ns.sqrt(ns.pi * m / 2)) / 2", _NOISE),
        ("G11 without 1/(1-eta)", " / (1 - eta)", "", _NOISE),
        ("G1 without its 2", "ns.sqrt(2 * count / m)", "ns.sqrt(count / m)", _GAPS),
        ("G2 without ghosts", "return 1 + 1 / ns.number(ghosts)", "return ns.number(1)", _GAPS),
        ("one uniform cover without delta", "count + log_inverse_delta,", "count,", _GAPS),
        ("the one-line gap with too small an offset", "CLOSED_OFFSET = 1.0853", "CLOSED_OFFSET = 1.0851", _GAPS),
    ],
    "statements/premise.py": [
        ("G0e with a margin on both labels below those built", "= 1 / arb(2).sqrt(),", "= 1 / arb(2),", _BOTH_LABELS),
        ("G0e with halved norms of values", "norm.two_one / 2)", "norm.two_one / 3)", _BOTH_LABELS),
    ],
    "engine/_witness.py": [
        (
            "a witness whose columns are as long as those of one copy",
            "columns = root * math.hypot(*shape), root * (",
            "columns = root * math.hypot(*shape), (",
            _BOTH_LABELS,
        )
    ],
    "statements/comparison/closed.py": [
        (
            "K1 with a fifth for the lowest quarter",
            "_LOWEST_QUARTER = 1.2711",
            "_LOWEST_QUARTER = 1.3998",
            f"{_COMPARED} lowest_quarter",
        ),
        ("K1 with the mean of infinitely many Gaussians", "LEFT = 0.51", "LEFT = 0.0", _READ),
        ("K1 with kappa for 2 kappa", "2 * fro * kappa(", "fro * kappa(", _READ),
        (
            "K1 with the oscillation in front of Psi",
            "kappa(ns, size.half_range) * size.hull",
            "kappa(ns, size.half_range) * size.half_range",
            _READ,
        ),
        ("K1 with one of two projections", "total + values**2 * gaussian", "total", f"{_COMPARED} both_checkers"),
    ],
    "statements/comparison/network.py": [
        ("K1 with the spectral norm of W_V", "columns else block.values_fro", "columns else block.values_op", _READ),
        (
            "K1 with a quarter of the hull for half an oscillation",
            "ns.minimum(hull / 2, most)",
            "ns.minimum(hull / 4, most)",
            f"{_COMPARED} oscillate",
        ),
    ],
    "statements/comparison/sharp.py": [
        ("K2 with a free sign outside", "outside + mean_of_signs(ns)", "outside", _READ),
        ("K2 without centres", " + union + beta / 2", " + union", _READ),
        ("K2 with om(b)", "_apart(ns, a)", "_apart(ns, b)", _READ),
        ("K2 with h = S a^2", "bend = hull * b**2", "bend = hull * a**2", _READ),
        ("K2 with half the range of 1/tau", "2, ns.exp(hull)", "2, ns.exp(hull / 2)", f"{_COMPARED} the_stretch"),
        (
            "K2 with the slope of 1/Z at one end",
            "ns.maximum(1 - be, be * top - 1 / top)",
            "(1 - be)",
            f"{_COMPARED} the_remainder",
        ),
    ],
    "statements/floors/_edelman.py": [
        ("construction E with more cells than there are", "self.k * (room.d - 2)", "self.k * (room.d - 1)", _MEMBERS),
        ("construction A without the first row's own weight", "plus, minus, 1,", "plus, minus, 0,", _MEMBERS),
        ("construction C without the first row's own weight", "- self.plus), alone,", "- self.plus), 0,", _MEMBERS),
        ("construction E with key rows that see no change", "sign, -sign)", "sign, sign)", _MEMBERS),
    ],
    "statements/floors/base.py": [
        (
            "construction E with the better of its key rows",
            "self.ns.minimum(*values) if sign > 0 else self.ns.maximum(*values)",
            "self.ns.maximum(*values) if sign > 0 else self.ns.minimum(*values)",
            _MEMBERS,
        ),
        (
            "F2 with a slope that forgets the read-out",
            "value * self._later[0][1] * self._readout",
            "value * self._later[0][1]",
            f"{_FLOORS} slope",
        ),
        (
            "floors of heads that share values",
            "a.kv_heads in (None, a.heads)",
            "a.kv_heads != 0",
            f"{_FLOORS} fit_is_refused",
        ),
    ],
    "statements/floors/counting.py": [
        ("F1 with v = floor(m/N)", "// cells + 1", "// cells", f"{_FLOORS} _mean_deviation"),
        ("F2 without what Tusnady's inequality leaves", " - a**2 / 8 - coupled) / m", ") / m", _AGREE),
        (
            "F2 with a sphere of one dimension more",
            "reach / cells, (n - 3) / 2",
            "reach / cells, (n - 2) / 2",
            f"{_FLOORS} parts_of",
        ),
        ("F2 with counts that do not vary", " + ns.sqrt(m * even)", "", _AGREE),
        (
            "F3 with walks that vary like Gaussians, not like their lengths",
            "(1 - two) * m - 2 * n / 5",
            "ns.number(m)",
            f"{_FLOORS} opposite",
        ),
        (
            "F3 that takes a sum of lengths for a Gaussian",
            " + ns.number(_BERRY_ESSEEN) * ns.sqrt(fourth) / variance",
            "",
            _AGREE,
        ),
        ("R1 with a cell more", "construction.cells(room) - 1", "construction.cells(room)", _AGREE),
    ],
    "statements/covers/lemmas.py": [
        ("T1 with half the steps", "return y**2 * ns.log(2 * n + 1)", "return y**2 / 2 * ns.log(2 * n + 1)", _COVERS),
        ("T2 without its levels", "rho * ns.log(wide * rho**2 / (rho - 1))", "rho * ns.log(wide)", _COVERS),
        ("T3 with half the units", "(y**2 / 2 + 1) *", "(y**2 / 4) *", _COVERS),
        ("T5 with factors at the whole tolerance", "ns.log1p(4 * y)", "ns.log1p(y)", _COVERS),
        ("T9 without its ceiling", "ns.log(ns.ceil(y))", "ns.log(y)", _COVERS),
    ],
    "statements/covers/base.py": [
        ("random centres of a hit twice as likely", "ns.log1p(y / (1 - t))", "ns.log1p(y / (1 - t) / 2)", _COVERS)
    ],
    "statements/posthoc.py": [("P1 without log 1.5", "cost + ns.log(ns.number(3) / 2) if", "cost if", _GAPS)],
    "layers/rows.py": [("a slope of gelu rounded down", "1.12891", "1.12890", _CONSTANTS)],
    "layers/linear.py": [
        ("L9 without the steepness of one factor", "c1 * to_gate + c3 * to_value", "c1 * to_gate", _FACTS)
    ],
    "layers/heads.py": [
        ("T8 in L7 without the 1 that multiplies the offset", "ns.sqrt(b**2 + 1) if layer.qk_bias else b", "b", _FACTS),
        (
            "S5 without the part of the scores in the Lipschitz factor",
            "ns.sqrt(1 + (scores.largest / tau) ** 2)",
            "1",
            _CONSTANTS,
        ),
        ("heads side by side that do not add up", "number * value**2 for", "value**2 for", _FACTS),
    ],
    "checkpoints/families/derived.py": [
        (
            "a trained query without what rounding may have changed",
            "exact + np.copysign(off * sizes, exact)",
            "exact",
            "tests/checkpoints/test_transformers.py -k trained_query",
        )
    ],
    "statements/network.py": [
        ("A0 with a quarter of the errors", "* slot.sensitivity", "* slot.sensitivity / 4", f"{_WHOLE} -k line")
    ],
    "base/answers.py": [("an answer of NaN is right", "~(scores > gamma)", "scores <= gamma", _LAWS)],
    "predictors/picking.py": [("NaN is right in a run", "isnan(keys), -np.inf", "isnan(keys), np.inf", _LAWS)],
    "predictors/_statements.py": [
        ("H at twice its delta", "facts.n, arb(delta).log())", "facts.n, arb(2 * delta).log())", _LAWS),
        (
            "one error more in a tail",
            "1 - p.beta_lower(errors + 1, n - errors, True)",
            "1 - p.beta_lower(errors, n - errors + 1, True)",
            _STATEMENTS,
        ),
        ("G7 without its bits", " - arb(facts.bits) * arb.const_log2()", "", _LAWS),
    ],
    "predictors/plans.py": [
        ("G10r without the picks", "limit(picks + e, n,", "limit(e, n,", _LAWS),
        (
            "G10r with all of delta for each reference",
            "(arb(share) * arb(delta)).log()",
            "arb(delta).log()",
            _STATEMENTS,
        ),
    ],
    "predictors/pac_bayes.py": [
        ("G6' without the log ratio", "_log_weight(errors) - arb(facts.nats)", "_log_weight(errors)", _LAWS),
        ("G6' without the law on the counts", "arb(delta).log() + _log_weight(errors)", "arb(delta).log()", _LAWS),
        (
            "lattice laws that are not normalised",
            "self.log_weight(k) - _sums(self)[-1].log()",
            "self.log_weight(k)",
            "tests/predictors/test_pac_bayes.py -k lattice",
        ),
        (
            "draws that are left out",
            "seeds != list(range(len(seeds)))",
            "not seeds",
            "tests/predictors/test_pac_bayes.py",
        ),
    ],
    "predictors/occam.py": [
        (
            "numbers that cost less than they have odds",
            "return (2 * value.bit_length() - 1) * arb.const_log2()",
            "return value.bit_length() * arb.const_log2()",
            "tests/predictors/test_updates.py",
        )
    ],
    "predictors/certificate.py": [
        (
            "alternatives that each have all of delta",
            "equal_shares(self.delta, len(self.alternatives))",
            "self.delta",
            "tests/predictors/test_certificate.py",
        )
    ],
    "predictors/rules/check.py": [
        ("a leaf that ends below 0", "value > 0 and", "value > -9 and", _RULES),
        ("a corner left out", "for t in (up, -down)", "for t in (up,)", _RULES),
        ("cuts that lose a side", "enumerate(tree.parts):", "enumerate(tree.parts[:1]):", _RULES),
    ],
    "predictors/rules/heads.py": [
        ("B1 without its count", "np.maximum(low * thetas, high * thetas)", "0 * thetas", _RULES)
    ],
    "predictors/rules/code.py": [("trees for free", "Fraction(1, 2 * left)", "Fraction(1, left)", _RULES)],
}
"""Of every file its mutations; those before base/ are of the statements of docs/theory.md."""

MUTATIONS = [Mutation(file, *row) for file, rows in ROWS.items() for row in rows]


def killed(mutation: Mutation) -> bool:
    """Whether the tests of a mutation fail, in a copy of the repository."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "*.db", "__pycache__", "assets"))
        file = copy / "boundcalc" / mutation.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutation.old) != 1:
            raise SystemExit(
                f"{mutation.what}: {mutation.old!r} occurs {text.count(mutation.old)} times in {mutation.file}"
            )
        file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutation.tests.split(" ", 2)]
        run = subprocess.run(words, cwd=copy, capture_output=True, text=True)
        if run.returncode not in (0, 1):  # nothing was collected, or the copy does not start
            raise SystemExit(f"{mutation.what}: pytest ends with {run.returncode}\n{run.stdout[-2000:]}")
        return run.returncode == 1


def main() -> int:
    """Try the rows that are asked for; how many survive."""
    rows = [row for row in MUTATIONS if not sys.argv[1:] or any(word in row.file for word in sys.argv[1:])]
    survivors = 0
    for row in rows:
        dead = killed(row)
        survivors += not dead
        sys.stdout.write(f"{'killed' if dead else 'SURVIVES':9} {row.what} ({row.file})\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(rows) - survivors} of {len(rows)} killed\n")
    return survivors


if __name__ == "__main__":
    sys.exit(main())
