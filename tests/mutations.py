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
        what: it leaves out or changes.
        file: below boundcalc/.
        old: text that occurs once in the file.
        new: what takes its place.
        tests: arguments of pytest.
    """

    what: str
    file: str
    old: str
    new: str
    tests: str


_LAWS = "tests/laws/test_predictors.py -k test_laws"
_STATEMENTS = "tests/predictors/test_statements.py"
_RULES = "tests/predictors/rules"

_COVERS = "tests/soundness/test_cover_constructions.py"
_GAPS = "tests/soundness/test_gap_theorems.py"
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
_MEMBERS = "tests/soundness/test_floors.py -k members_are"

STATEMENTS = [
    Mutation(
        "V4 without 1/(2L)",
        "layers/merged.py",
        "extra = 1 / (2 * lipschitz)",
        "extra = 0 * lipschitz",
        _HIDDEN,
    ),
    Mutation(
        "V4 with half the kinks",
        "layers/merged.py",
        "ns.sqrt(k / (2 * ns.pi))",
        "ns.sqrt(k / (8 * ns.pi))",
        _HIDDEN,
    ),
    Mutation("V4 with one event", "statements/noises.py", "return 2 * max(1,", "return 1 * max(1,", _HIDDEN),
    Mutation(
        "A6 with a nuclear norm of |A| |B| / 1.2",
        "statements/weights.py",
        "left.nuclear * right.op, left.fro * right.fro)",
        "left.nuclear * right.op, left.fro * right.fro / 1.2)",
        _NORMS,
    ),
    Mutation(
        "G12 at half its ratio",
        "proof/_levels.py",
        "return (arb(before.log_eps) - arb(log_eps)).exp()",
        "return (arb(before.log_eps) - arb(log_eps)).exp() / 2",
        _REFINED,
    ),
    Mutation(
        "G12 at half its ratio, second checker",
        "proof/second/_walk.py",
        "num(old.log_eps) - num(log_eps))",
        "num(old.log_eps) - num(log_eps)) / 2",
        _REFINED,
    ),
    Mutation(
        "G12 in any order",
        "statements/strategies/theorems.py",
        "yield ends[j + 1] ** 2 * count, ends[j] ** 2 * more,",
        "yield ends[j] * 0, ends[j] ** 2 * more,",
        _REFINED,
    ),
    Mutation(
        "G12 in any order, second checker",
        "proof/second/_value.py",
        "steep * scale**2 <= count * _ALMOST",
        "num(0) <= count",
        _REFINED,
    ),
    Mutation(
        "G12 with scales that need not fall",
        "statements/strategies/theorems.py",
        "yield fine, coarse,",
        "yield fine * 0, coarse,",
        _REFINED,
    ),
    Mutation(
        "G12 with scales that need not fall, second checker",
        "proof/second/_value.py",
        "all(fine < coarse for",
        "all(fine > 0 or coarse for",
        _REFINED,
    ),
    Mutation(
        "P1 with log 1.5 less, second checker", "proof/second/_posthoc.py", " + MP.log(num(3) / 2)", "", _TWO_CHECKERS
    ),
    Mutation(
        "T13 with a majorant below the function",
        "statements/covers/laws.py",
        "LINE, BEND = 0.804743,",
        "LINE, BEND = 0.8040,",
        _CENTRES,
    ),
    Mutation(
        "T13 with a line far below the function",
        "statements/covers/laws.py",
        "LINE, BEND = 0.804743,",
        "LINE, BEND = 0.7,",
        _CENTRES,
    ),
    Mutation(
        "noise with more entropy than it has",
        "statements/covers/laws.py",
        "return 3 * step(a) - step(",
        "return 2 * step(a) - step(",
        _CENTRES,
    ),
    Mutation(
        "G11 with half the moment",
        "statements/gap.py",
        "ns.log(2 + ns.sqrt(ns.pi * m / 2))",
        "ns.log(2 + ns.sqrt(ns.pi * m / 2)) / 2",
        _NOISE,
    ),
    Mutation("G11 without 1/(1-eta)", "statements/gap.py", " / (1 - eta)", "", _NOISE),
    Mutation(
        "G13 with a bit less",
        "statements/strategies/theorems.py",
        "weights * ns.number(bits) *",
        "weights * ns.number(bits - 1) *",
        "tests/soundness/test_stored.py",
    ),
    Mutation(
        "G0e with a margin on both labels below those built",
        "statements/premise.py",
        "steep, step = 1 / arb(2).sqrt(), next",
        "steep, step = 1 / arb(2), next",
        _BOTH_LABELS,
    ),
    Mutation(
        "a witness whose columns are as long as those of one copy",
        "engine/_witness.py",
        "columns = root * math.hypot(*shape), root * (",
        "columns = root * math.hypot(*shape), (",
        _BOTH_LABELS,
    ),
    Mutation(
        "G0e with halved norms of values",
        "statements/premise.py",
        "norm.two_one / 2)",
        "norm.two_one / 3)",
        _BOTH_LABELS,
    ),
    Mutation(
        "A7 with the values of one table",
        "layers/merged.py",
        'if weight.role == "values"), list',
        'if weight.kind == "token_values"), list',
        "tests/laws/test_limits.py",
    ),
    Mutation(
        "A7 with half of what scores may move",
        "layers/merged.py",
        "2 * radius, saturates=True",
        "radius, saturates=True",
        _FACTS,
    ),
    Mutation(
        "K1 with a fifth for the lowest quarter",
        "statements/comparison/closed.py",
        "_LOWEST_QUARTER = 1.2711",
        "_LOWEST_QUARTER = 1.3998",
        f"{_COMPARED} lowest_quarter",
    ),
    Mutation(
        "K1 with the mean of infinitely many Gaussians",
        "statements/comparison/closed.py",
        "LEFT = 0.51",
        "LEFT = 0.0",
        _READ,
    ),
    Mutation("K1 with kappa for 2 kappa", "statements/comparison/closed.py", "2 * fro * kappa(", "fro * kappa(", _READ),
    Mutation(
        "K1 with the spectral norm of W_V",
        "statements/comparison/network.py",
        "columns else block.values_fro",
        "columns else block.values_op",
        _READ,
    ),
    Mutation(
        "K1 with the oscillation in front of Psi",
        "statements/comparison/closed.py",
        "kappa(ns, size.half_range) * size.hull",
        "kappa(ns, size.half_range) * size.half_range",
        _READ,
    ),
    Mutation(
        "K1 with a quarter of the hull for half an oscillation",
        "statements/comparison/network.py",
        "ns.minimum(hull / 2, most)",
        "ns.minimum(hull / 4, most)",
        f"{_COMPARED} oscillate",
    ),
    Mutation(
        "K2 with a free sign outside",
        "statements/comparison/sharp.py",
        "outside + mean_of_signs(ns)",
        "outside",
        _READ,
    ),
    Mutation("K2 without centres", "statements/comparison/sharp.py", " + union + beta / 2", " + union", _READ),
    Mutation(
        "K1 with one of two projections",
        "statements/comparison/closed.py",
        "total = total + values**2 * gaussian",
        "total = total",
        f"{_COMPARED} projections_act",
    ),
    Mutation("K2 with om(b)", "statements/comparison/sharp.py", "_apart(ns, a)", "_apart(ns, b)", _READ),
    Mutation("K2 with h = S a^2", "statements/comparison/sharp.py", "bend = hull * b**2", "bend = hull * a**2", _READ),
    Mutation(
        "K2 with half the range of 1/tau",
        "statements/comparison/sharp.py",
        "ns.number(stretch) ** 2, ns.exp(hull)",
        "ns.number(stretch) ** 2, ns.exp(hull / 2)",
        f"{_COMPARED} the_stretch",
    ),
    Mutation(
        "K2 with the slope of 1/Z at one end",
        "statements/comparison/sharp.py",
        "ns.maximum(1 - be, be * top - 1 / top)",
        "(1 - be)",
        f"{_COMPARED} the_remainder",
    ),
    Mutation(
        "construction E with more cells than there are",
        "statements/floors/_edelman.py",
        "return self.k * (room.d - 2)",
        "return self.k * (room.d - 1)",
        _MEMBERS,
    ),
    Mutation(
        "construction A without the first row's own weight",
        "statements/floors/_edelman.py",
        "pooled(room, plus, minus, 1, s)",
        "pooled(room, plus, minus, 0, s)",
        _MEMBERS,
    ),
    Mutation(
        "construction C without the first row's own weight",
        "statements/floors/_edelman.py",
        "alone - self.plus), alone, s)",
        "alone - self.plus), 0, s)",
        _MEMBERS,
    ),
    Mutation(
        "construction E with the better of its key rows",
        "statements/floors/base.py",
        "self.ns.minimum(*values) if sign > 0 else self.ns.maximum(*values)",
        "self.ns.maximum(*values) if sign > 0 else self.ns.minimum(*values)",
        _MEMBERS,
    ),
    Mutation(
        "F1 with v = floor(m/N)",
        "statements/floors/counting.py",
        "v = m // cells + 1",
        "v = m // cells",
        "tests/soundness/test_floors.py -k _mean_deviation",
    ),
    Mutation(
        "F2 without what Tusnady's inequality leaves",
        "statements/floors/counting.py",
        " - a**2 / 8 - coupled) / m",
        ") / m",
        "tests/soundness/test_floors.py -k both_checkers",
    ),
    Mutation(
        "F2 with a sphere of one dimension more",
        "statements/floors/counting.py",
        "reach / cells, (n - 3) / 2",
        "reach / cells, (n - 2) / 2",
        "tests/soundness/test_floors.py -k parts_of",
    ),
    Mutation(
        "F2 with counts that do not vary",
        "statements/floors/counting.py",
        " + ns.sqrt(m * even)",
        "",
        "tests/soundness/test_floors.py -k both_checkers",
    ),
    Mutation(
        "F2 with a slope that forgets the read-out",
        "statements/floors/base.py",
        "value * self._later[0][1] * self._readout",
        "value * self._later[0][1]",
        "tests/soundness/test_floors.py -k slope",
    ),
    Mutation(
        "F3 with walks that vary like Gaussians, not like their lengths",
        "statements/floors/counting.py",
        "(1 - two) * m - 2 * n / 5",
        "ns.number(m)",
        "tests/soundness/test_floors.py -k opposite",
    ),
    Mutation(
        "F3 that takes a sum of lengths for a Gaussian",
        "statements/floors/counting.py",
        " + ns.number(_BERRY_ESSEEN) * ns.sqrt(fourth) / variance",
        "",
        "tests/soundness/test_floors.py -k both_checkers",
    ),
    Mutation(
        "construction E with key rows that see no change",
        "statements/floors/_edelman.py",
        "self._with_keys(room, sign, -sign)",
        "self._with_keys(room, sign, sign)",
        _MEMBERS,
    ),
    Mutation(
        "R1 with a cell more",
        "statements/floors/counting.py",
        "construction.cells(room) - 1",
        "construction.cells(room)",
        "tests/soundness/test_floors.py -k both_checkers",
    ),
    Mutation(
        "floors of heads that share values",
        "statements/floors/base.py",
        "a.kv_heads in (None, a.heads)",
        "a.kv_heads != 0",
        "tests/soundness/test_floors.py -k fit_is_refused",
    ),
    Mutation(
        "T1 with half the steps",
        "statements/covers/lemmas.py",
        "return y**2 * ns.log(2 * n + 1)",
        "return y**2 / 2 * ns.log(2 * n + 1)",
        _COVERS,
    ),
    Mutation(
        "T2 without its levels",
        "statements/covers/lemmas.py",
        "rho * ns.log(wide * rho**2 / (rho - 1))",
        "rho * ns.log(wide)",
        _COVERS,
    ),
    Mutation("T3 with half the units", "statements/covers/lemmas.py", "(y**2 / 2 + 1) *", "(y**2 / 4) *", _COVERS),
    Mutation(
        "random centres of a hit twice as likely",
        "statements/covers/base.py",
        "ns.log1p(y / (1 - t))",
        "ns.log1p(y / (1 - t) / 2)",
        _COVERS,
    ),
    Mutation(
        "T5 with factors at the whole tolerance",
        "statements/covers/lemmas.py",
        "ns.log1p(4 * y)",
        "ns.log1p(y)",
        _COVERS,
    ),
    Mutation("T9 without its ceiling", "statements/covers/lemmas.py", "ns.log(ns.ceil(y))", "ns.log(y)", _COVERS),
    Mutation("G1 without its 2", "statements/gap.py", "ns.sqrt(2 * count / m)", "ns.sqrt(count / m)", _GAPS),
    Mutation(
        "G2 with its residual once",
        "statements/strategies/theorems.py",
        'Term("2 e_J", 2 * last',
        'Term("2 e_J", last',
        _GAPS,
    ),
    Mutation(
        "G2 without ghosts", "statements/gap.py", "return 1 + 1 / ns.number(ghosts)", "return ns.number(1)", _GAPS
    ),
    Mutation(
        "one uniform cover without delta",
        "statements/gap.py",
        "deviation(ns, count + log_inverse_delta, m)",
        "deviation(ns, count, m)",
        _GAPS,
    ),
    Mutation(
        "G3 without delta",
        "statements/strategies/theorems.py",
        "nats = inputs.counts[0] + inputs.log_inverse_delta",
        "nats = inputs.counts[0]",
        _TWO_CHECKERS,
    ),
    Mutation(
        "the one-line gap with too small an offset",
        "statements/gap.py",
        "CLOSED_OFFSET = 1.0853",
        "CLOSED_OFFSET = 1.0851",
        _GAPS,
    ),
    Mutation(
        "P1 without log 1.5",
        "statements/posthoc.py",
        "cost + ns.log(ns.number(3) / 2) if",
        "cost if",
        _GAPS,
    ),
    Mutation(
        "a slope of gelu rounded down",
        "layers/rows.py",
        "1.12891",
        "1.12890",
        "tests/soundness/test_layer_constants.py",
    ),
    Mutation(
        "L9 without the steepness of one factor",
        "layers/linear.py",
        "c1 * to_gate + c3 * to_value",
        "c1 * to_gate",
        _FACTS,
    ),
    Mutation(
        "T8 in L7 without the 1 that multiplies the offset",
        "layers/heads.py",
        "ns.sqrt(b**2 + 1) if layer.qk_bias else b",
        "b",
        _FACTS,
    ),
    Mutation(
        "S5 without the part of the scores in the Lipschitz factor",
        "layers/heads.py",
        "ns.sqrt(1 + (scores.largest / tau) ** 2)",
        "1",
        "tests/soundness/test_layer_constants.py",
    ),
    Mutation(
        "a trained query without what rounding may have changed",
        "checkpoints/families/derived.py",
        "exact + np.copysign(off * sizes, exact)",
        "exact",
        "tests/checkpoints/test_transformers.py -k trained_query",
    ),
    Mutation(
        "heads side by side that do not add up",
        "layers/heads.py",
        "number * value**2 for",
        "value**2 for",
        _FACTS,
    ),
    Mutation(
        "A0 with a quarter of the errors",
        "statements/network.py",
        "self.gains[key] * slot.sensitivity",
        "self.gains[key] * slot.sensitivity / 4",
        f"{_WHOLE} -k line",
    ),
    Mutation(
        "A5 without sqrt k",
        "statements/weights.py",
        "columns = least(ns.sqrt(ns.number(k)) * fro, of",
        "columns = least(fro, of",
        _NORMS,
    ),
]
"""Of the statements of docs/theory.md."""

MUTATIONS = [
    *STATEMENTS,
    Mutation("an answer of NaN is right", "base/answers.py", "~(scores > gamma)", "scores <= gamma", _LAWS),
    Mutation("NaN is right in a run", "predictors/picking.py", "isnan(keys), -np.inf", "isnan(keys), np.inf", _LAWS),
    Mutation(
        "H at twice its delta",
        "predictors/_statements.py",
        "limit(facts.errors, facts.n, arb(delta).log())",
        "limit(facts.errors, facts.n, arb(2 * delta).log())",
        _LAWS,
    ),
    Mutation(
        "one error more in a tail",
        "predictors/_statements.py",
        "1 - p.beta_lower(errors + 1, n - errors, True)",
        "1 - p.beta_lower(errors, n - errors + 1, True)",
        "tests/predictors/test_statements.py",
    ),
    Mutation("G7 without its bits", "predictors/_statements.py", " - arb(facts.bits) * arb.const_log2()", "", _LAWS),
    Mutation("G10r without the picks", "predictors/plans.py", "limit(picks + e, n,", "limit(e, n,", _LAWS),
    Mutation(
        "G10r with all of delta for each reference",
        "predictors/plans.py",
        "(arb(share) * arb(delta)).log()",
        "arb(delta).log()",
        _STATEMENTS,
    ),
    Mutation(
        "G6' without the log ratio",
        "predictors/pac_bayes.py",
        "_log_weight(errors) - arb(facts.nats)",
        "_log_weight(errors)",
        _LAWS,
    ),
    Mutation(
        "G6' without the law on the counts",
        "predictors/pac_bayes.py",
        "arb(delta).log() + _log_weight(errors)",
        "arb(delta).log()",
        _LAWS,
    ),
    Mutation(
        "lattice laws that are not normalised",
        "predictors/pac_bayes.py",
        "self.log_weight(k) - _sums(self)[-1].log()",
        "self.log_weight(k)",
        "tests/predictors/test_pac_bayes.py -k lattice",
    ),
    Mutation(
        "numbers that cost less than they have odds",
        "predictors/occam.py",
        "return (2 * value.bit_length() - 1) * arb.const_log2()",
        "return value.bit_length() * arb.const_log2()",
        "tests/predictors/test_updates.py",
    ),
    Mutation(
        "alternatives that spend more than delta",
        "predictors/certificate.py",
        "if spent > Fraction(self.delta) or",
        "if spent > 2 * Fraction(self.delta) or",
        "tests/predictors/test_certificate.py",
    ),
    Mutation("a leaf that ends below 0", "predictors/rules/check.py", "value > 0 and", "value > -9 and", _RULES),
    Mutation(
        "B1 without its count",
        "predictors/rules/heads.py",
        "np.maximum(low * thetas, high * thetas)",
        "0 * thetas",
        _RULES,
    ),
    Mutation("a corner left out", "predictors/rules/check.py", "for t in (up, -down)", "for t in (up,)", _RULES),
    Mutation(
        "cuts that lose a side",
        "predictors/rules/check.py",
        "enumerate(tree.parts):",
        "enumerate(tree.parts[:1]):",
        _RULES,
    ),
    Mutation("trees for free", "predictors/rules/code.py", "Fraction(1, 2 * left)", "Fraction(1, left)", _RULES),
    Mutation(
        "draws that are left out",
        "predictors/pac_bayes.py",
        "if [seed for seed, _ in drawn] != list(range(len(drawn))) or",
        "if",
        "tests/predictors/test_pac_bayes.py",
    ),
]


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
