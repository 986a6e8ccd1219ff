"""Commands of `boundcalc latent` that train networks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.cli.files import FileCommand
from boundcalc.cli.latent_show import (
    NUMBERS,
    WHOLES,
    ceiling,
    delta_option,
    lengths_option,
    option,
    show_rows,
    steps_option,
    table_option,
)
from boundcalc.cli.learning import store_option
from boundcalc.cli.values import NUMBER, WHOLE

if TYPE_CHECKING:
    from boundcalc.lab.latent.experiments.learn import GapRow

_ABOVE_ONE = "a gap of a loss in [0, 1] is at most 1 anyway."


@click.command(
    cls=FileCommand,
    short_help="What a trained representation keeps of its input, and what it drops.",
    epilog="""\b
Examples:
  boundcalc latent minimal                    half a minute
  boundcalc latent minimal --snapshots 1,3000 --seeds 10 --format json""",
)
@option("--L", "length", type=WHOLE, default=32, help="Tosses of each coin.")
@option(
    "--snapshots",
    "steps",
    type=WHOLES,
    default="1,10,100,1000,3000",
    help="Training steps after which networks are looked at.",
)
@option("--seeds", type=click.IntRange(1), default=5, help="Seeds per point.")
@option("--d", type=WHOLE, default=16, help="Width of a row.")
@option(
    "--eye",
    "noise",
    type=NUMBER,
    default=0.1,
    help="Noise of who looks: the representation has size 1.",
)
@option("--weight-decay", "decay", type=NUMBER, default=0.3, help="Decay of the weights.")
@table_option
def minimal(form: str, **options: Any) -> None:
    """Trains networks to foretell one of two coins; how much their representation tells of its posterior, and of the rest.

    Shares of variance that a non-linear probe explains on fresh sequences, with 95% intervals over networks; the last line
    is the posterior itself in place of a representation.
    """
    from boundcalc.lab.latent.experiments.numbers import document
    from boundcalc.lab.train.minimal import TARGETS, MinimalPlan
    from boundcalc.lab.train.minimal import minimal as run

    plan = MinimalPlan(**options)
    found = run(plan)
    columns = {"steps": lambda row: "posterior" if row.steps is None else row.steps}
    columns |= {name: f"shares.{name}" for name in TARGETS} | {"test error": "error", "least": "bayes"}
    show_rows(form, document("minimal", plan, found), found, columns)


@click.command(
    cls=FileCommand,
    short_help="Generalization gaps of trained attention over growing inputs, beside X5.",
    epilog="""\b
Examples:
  boundcalc latent learn --store runs.db      160 trials, a few minutes
  boundcalc latent learn --L 8,64 --m 64 --seeds 4 --steps 300""",
)
@lengths_option(default="8,32,128,512", help="Tokens that inform.")
@option("--m", "samples", type=WHOLES, default="64,256", help="Training sequences.")
@option("--kind", "kinds", type=click.Choice(("supervised", "masked")), multiple=True, help="Both, unless given.")
@option("--seeds", type=click.IntRange(1), default=10, help="Seeds per point.")
@steps_option(default=600)
@option("--C", "C", type=NUMBER, default=6.0, help="Radius of the norm balls.")
@store_option
@option("--quiet", is_flag=True, help="No progress.")
@table_option
def learn(store_path: Path, quiet: bool, form: str, **options: Any) -> None:
    """Trains small attention models, supervised and on masked tokens; trials the store has are not run again.

    The loss is the squared error cut at 1, or how often a masked token is guessed wrong. Slopes of the gap against log L, with
    95% intervals, stand below: the claim is that none is significantly positive; a gap that falls does not contradict it.
    """
    import torch  # noqa: F401 - what is missing is said before a store is made

    from boundcalc.cli.progress import kept
    from boundcalc.lab.latent.experiments.learn import TASKS, LearnPlan, flatness, gap_points, gap_rows, with_bounds
    from boundcalc.lab.train.run import run_sweep
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.sweep import sweep_from_json

    options["kinds"] = options["kinds"] or ("supervised", "masked")
    plan = LearnPlan(**options)
    sweeps = [sweep_from_json(plan.sweep(kind)) for kind in plan.kinds]
    with Store(store_path) as runs:
        for sweep in sweeps:
            with kept(runs, sweep.trials, quiet) as progress:
                ran = run_sweep(sweep, runs, progress=progress)
            if ran.errors:
                raise click.ClickException(f"{len(ran.errors)} stacks failed; the first: {ran.errors[0]}")
        wanted = {trial.hash: trial for sweep in sweeps for trial in sweep.trials}
        records = [record.to_json() for record in runs.records() if record.hash in wanted]
    points = gap_points(records)
    trials = {(trial.task.kind, getattr(trial.task, "L", 0)): trial for trial in wanted.values()}
    least = {place: trial.task.bayes_risk().value for place, trial in trials.items()}
    rows = [
        replace(with_bounds(row, plan, trials[place].architecture), bayes=least[place])
        for row in gap_rows(points)
        for place in [(TASKS[row.kind], row.length)]
    ]
    slopes = flatness(points)
    columns = {"kind": "kind", "m": "m", "L": "length", "train": "train", "test": "test", "Bayes risk": "bayes"}
    columns |= {"gap": "gap.value", "low": "gap.low", "high": "gap.high"}
    columns |= {"X5": lambda row: _proxy(row, row.x5), "log T bound": lambda row: _proxy(row, row.log_t)}
    notes = [
        f"{found.kind}, {'all m' if found.m is None else f'm {found.m}'}: slope of the gap against log L {found.slope}, "
        + ("significantly positive: it rises" if found.rises else "not significantly positive")
        for found in slopes
    ]
    if "masked" in plan.kinds:
        notes.append(
            "X5 has no L in it; for masked tokens it bounds the gap of the ramp loss of margin 1, not of the error"
        )
    if any(max(row.x5 or 0.0, row.log_t or 0.0) >= 1 for row in rows if row.kind == "masked"):
        notes.append(f"masked: where X5 and the log T bound are above 1 they are vacuous: {_ABOVE_ONE}")
    if "supervised" in plan.kinds:
        notes.append(
            "~: no bounds, since rows of the supervised task are normal and exceed any radius with small probability"
        )
    document = {"rows": [row.to_json() for row in rows], "slopes": [found.to_json() for found in slopes]}
    show_rows(form, document, rows, columns, notes)


@click.command(
    cls=FileCommand,
    short_help="How near training comes to the desired parameter and to the Bayes risk, beside X5.",
    epilog="""\b
Examples:
  boundcalc latent desired                                    a minute
  boundcalc latent desired --L 16 --m 1000 --seeds 1000       coverage of X5
  boundcalc latent desired --L 16 --m 1000 --seeds 1000 --against   by models trained to exceed it""",
)
@lengths_option(default="4,16,64", help="Tokens that inform.")
@option(
    "--m",
    "samples",
    type=WHOLES,
    default="100,1000,10000,100000,1000000",
    help="Training sequences.",
)
@option("--seeds", type=click.IntRange(2), default=5, help="Seeds per point.")
@steps_option(default=300)
@option("--C", "C", type=NUMBER, default=6.0, help="Radius of the norm balls.")
@delta_option
@option("--against", is_flag=True, help="Trains models to make the gap as large as they can instead.")
@table_option
def desired(form: str, **options: Any) -> None:
    """Trains attention in a class fixed before the data, on a law whose Bayes predictor is known and (nearly) in the class.

    Risks are exact sums, losses lie in [0, 1], spectral norms are kept by projection and certified afterwards. The bound on the
    excess risk is X5 for a minimiser, what training lost against the desired parameter, and that one's own excess.
    """
    from boundcalc.lab.latent.experiments.numbers import document
    from boundcalc.lab.train.desired import DesiredPlan, learned

    plan = DesiredPlan(**options)
    rows = learned(plan)
    columns = {"L": "length", "m": "m", "excess risk": "excess.value", "low": "excess.low", "high": "excess.high"}
    columns |= {"its bound": "<=bound", "of constant 0": "ignorant", "gap": "gap.value", "X5": "<=x5"}
    columns |= {"attention apart": "apart.value", "value map apart": "map_apart.value", "above": "exceeded"}
    columns |= {"members": lambda row: f"{row.members}/{plan.seeds}"}
    notes = [
        "attention apart: mean total variation of its weights from those of the desired parameter; above: models above "
        f"a bound; members: models whose certified norms keep the limits ({plan.C:g} and 1)",
    ]
    if any(row.x5 >= 1 for row in rows):
        notes.append(f"where X5 is above 1 it says nothing: {_ABOVE_ONE}")
    show_rows(form, document("desired", plan, rows), rows, columns, notes)


@click.command(
    cls=FileCommand,
    short_help="One attention model from masked pretext to downstream task, beside X6.",
    epilog="""\b
Examples:
  boundcalc latent pretrain                                   a minute
  boundcalc latent pretrain --blur 0,0.4 --L 32 --draws 1000""",
)
@option(
    "--blur",
    "blurs",
    type=NUMBERS,
    default="0,0.25,0.3333333333333333,0.4,0.45",
    help="Of the pretext: how often it answers with a word's twin; at the middle L.",
)
@lengths_option(default="4,16,32,128", help="Tokens that inform.")
@option("--V", "words", type=WHOLE, default=6, help="Words, in pairs of twins.")
@option("--seeds", type=click.IntRange(2), default=4, help="Seeds per point.")
@steps_option(default=1000)
@delta_option
@option("--n-test", "fresh", type=WHOLE, default=20_000, help="Test examples.")
@option(
    "--draws",
    type=click.IntRange(0),
    default=0,
    help="Sets of 500 sequences per network, to count how often its bounds fall short.",
)
@table_option
def pretrain(form: str, lengths: tuple[int, ...], **options: Any) -> None:
    """Pretrains attention to guess masked tokens, freezes it, and asks it for a share of words that no label named.

    The pretext error has an upper limit from fresh sequences; X6 multiplies it by kappa^2. A head fitted to downstream
    labels on the frozen outputs, and one on those of networks after a single step, stand beside it.
    """
    from boundcalc.lab.latent.experiments.numbers import document
    from boundcalc.lab.train.pretext import PretextPlan, pretrained

    plan = PretextPlan(lengths=lengths, length=lengths[len(lengths) // 2], **options)
    rows = pretrained(plan)
    columns = {
        "L": "length",
        "blur": "blur",
        "kappa": "kappa",
        "pretext error": "pretext.value",
        "its limit": "<=limit",
    }
    columns |= {"head wM+": "induced.value", "low": "induced.low", "high": "induced.high", "X6": "<=bound"}
    columns |= {"fitted head": "fitted.value", "untrained, fitted": "untrained.value", "constant": "nothing"}
    columns |= {"unknown": "unknown", "above": "exceeded"}
    notes = [
        "errors are E(answer - w h)^2; constant: of the best one; unknown: what no answer can know of w z; above: networks "
        "above X6",
    ]
    if plan.draws:
        short, over = (sum(getattr(row, name) for row in rows) for name in ("short", "over"))
        notes.append(
            f"of {len(rows) * plan.seeds * plan.draws} draws the limit fell short of the pretext error in {short}, X6 of "
            f"the downstream error in {over}; each may in a share of {plan.delta:g}"
        )
    show_rows(form, document("pretrain", plan, rows), rows, columns, notes)


@click.command(
    cls=FileCommand,
    short_help="Masked patches of digits: a frozen network's worth against kappa.",
    epilog="""\b
Examples:
  boundcalc latent patches                                    a minute; needs scikit-learn
  boundcalc latent patches --asked 4,8 --seeds 2 --format json""",
)
@option("--asked", type=WHOLES, default="3,4,5,6,8", help="Hidden places, of 8, with their answers.")
@option("--m", "labels", type=WHOLES, default="20,100,500", help="Labels of fitted heads.")
@option("--V", "words", type=WHOLE, default=8, help="Words, made of patches.")
@option("--d", type=WHOLE, default=64, help="Width of a row.")
@option("--seeds", type=click.IntRange(2), default=4, help="Seeds per point.")
@steps_option(default=1200)
@delta_option
@option("--n-test", "fresh", type=WHOLE, default=4000, help="Test examples, where words are drawn.")
@table_option
def patches(form: str, **options: Any) -> None:
    """Pretrains attention to tell hidden patches of 8 x 8 digits from the others, freezes it, and asks for the digit.

    Once on a law whose words are independent given the digit, where X6 is a bound, and once on the images, where it is an
    estimate. Heads fitted to m labels stand beside: on the frozen answers, on an untrained network's, and on the raw words.
    """
    from boundcalc.lab.latent.experiments.numbers import document
    from boundcalc.lab.train.patches import PatchPlan
    from boundcalc.lab.train.patches import patches as run

    plan = PatchPlan(**options)
    rows = run(plan)
    columns = {
        "law": "law",
        "asked": "asked",
        "kappa": "kappa",
        "pretext error": "pretext.value",
        "its limit": "<=limit",
    }
    columns |= {"head wM+": "induced.value", "low": "induced.low", "high": "induced.high"}
    columns |= {"X6": lambda row: ("~" if row.kind == "estimate" else "") + str(ceiling(row.bound))}
    columns |= {"above": "exceeded", "10 digits: M+": "without.value"}
    for m in plan.labels:
        for name in ("fitted", "untrained", "raw"):
            columns[f"{name} {m}"] = lambda row, name=name, m=m: getattr(row, name)[m].value
    columns |= {"known": "known.value"}
    notes = [
        "head wM+ and X6: E(answer - w h)^2 over pairs of digits, as a share of the best constant's; 1 and more is worth "
        "nothing; these and kappa are geometric means over networks; above: pairs and networks above X6 (with ~ none can be: "
        "limit and error are of the same images)",
        "10 digits: test errors of the head M^+, of heads fitted to m labels, and of h itself (known); M is estimated from "
        "500 labels",
        "~: an estimate, as h is what would hold if the patches of an image were independent given its digit",
    ]
    show_rows(form, document("patches", plan, rows), rows, columns, notes)


def _proxy(row: GapRow, bound: float | None) -> str:
    """A bound; where rows may be longer than it supposes, it is none."""
    return ("~" if row.kind == "supervised" else "") + str(ceiling(bound))


TRAINED = (minimal, learn, desired, pretrain, patches)
"""Commands of the group."""
