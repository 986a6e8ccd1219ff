"""Commands of `boundcalc latent` that train networks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from boundcalc.cli.files import FileCommand
from boundcalc.cli.latent_show import NUMBERS, WHOLES, ceiling, form_option, show
from boundcalc.cli.learning import store_option
from boundcalc.cli.values import NUMBER, WHOLE

_ABOVE_ONE = "a gap of a loss in [0, 1] is at most 1 anyway."


@click.command(
    cls=FileCommand,
    short_help="What a trained representation keeps of its input, and what it drops.",
    epilog="""\b
Examples:
  boundcalc latent minimal                    half a minute
  boundcalc latent minimal --snapshots 1,3000 --seeds 10 --format json""",
)
@click.option("--L", "length", type=WHOLE, default=32, show_default=True, help="Tosses of each coin.")
@click.option(
    "--snapshots",
    "steps",
    type=WHOLES,
    default="1,10,100,1000,3000",
    show_default=True,
    help="Training steps after which networks are looked at.",
)
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Seeds per point.")
@click.option("--d", type=WHOLE, default=16, show_default=True, help="Width of a row.")
@click.option(
    "--eye",
    "noise",
    type=NUMBER,
    default=0.1,
    show_default=True,
    help="Noise of who looks: the representation has size 1.",
)
@click.option("--weight-decay", "decay", type=NUMBER, default=0.3, show_default=True, help="Decay of the weights.")
@form_option
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
    rows = [
        (
            "posterior" if row.steps is None else row.steps,
            *(str(row.shares[name]) for name in TARGETS),
            row.error,
            row.bayes,
        )
        for row in found
    ]
    show(form, document("minimal", plan, found), ("steps", *TARGETS, "test error", "least"), rows)


@click.command(
    cls=FileCommand,
    short_help="Generalization gaps of trained attention over growing inputs, beside X5.",
    epilog="""\b
Examples:
  boundcalc latent learn --store runs.db      160 trials, a few minutes
  boundcalc latent learn --L 8,64 --m 64 --seeds 4 --steps 300""",
)
@click.option("--L", "lengths", type=WHOLES, default="8,32,128,512", show_default=True, help="Tokens that inform.")
@click.option("--m", "samples", type=WHOLES, default="64,256", show_default=True, help="Training sequences.")
@click.option("--kind", "kinds", type=click.Choice(("supervised", "masked")), multiple=True, help="Both, unless given.")
@click.option("--seeds", type=click.IntRange(1), default=10, show_default=True, help="Seeds per point.")
@click.option("--steps", type=WHOLE, default=600, show_default=True, help="Most steps of training.")
@click.option("--C", "C", type=NUMBER, default=6.0, show_default=True, help="Radius of the norm balls.")
@store_option
@click.option("--quiet", is_flag=True, help="No progress.")
@form_option
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
    headings = ("kind", "m", "L", "train", "test", "Bayes risk", "gap", "low", "high", "X5", "log T bound")
    cells = [
        (
            *(row.kind, row.m, row.length, row.train, row.test, row.bayes, row.gap.value, row.gap.low, row.gap.high),
            ("~" if row.kind == "supervised" else "") + str(ceiling(row.x5)),
            ("~" if row.kind == "supervised" else "") + str(ceiling(row.log_t)),
        )
        for row in rows
    ]
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
    show(form, document, headings, cells, notes)


@click.command(
    cls=FileCommand,
    short_help="How near training comes to the desired parameter and to the Bayes risk, beside X5.",
    epilog="""\b
Examples:
  boundcalc latent desired                                    a minute
  boundcalc latent desired --L 16 --m 1000 --seeds 1000       coverage of X5
  boundcalc latent desired --L 16 --m 1000 --seeds 1000 --against   by models trained to exceed it""",
)
@click.option("--L", "lengths", type=WHOLES, default="4,16,64", show_default=True, help="Tokens that inform.")
@click.option(
    "--m",
    "samples",
    type=WHOLES,
    default="100,1000,10000,100000,1000000",
    show_default=True,
    help="Training sequences.",
)
@click.option("--seeds", type=click.IntRange(2), default=5, show_default=True, help="Seeds per point.")
@click.option("--steps", type=WHOLE, default=300, show_default=True, help="Most steps of training.")
@click.option("--C", "C", type=NUMBER, default=6.0, show_default=True, help="Radius of the norm balls.")
@click.option("--delta", type=NUMBER, default=0.05, show_default=True, help="Failure probability.")
@click.option("--against", is_flag=True, help="Trains models to make the gap as large as they can instead.")
@form_option
def desired(form: str, **options: Any) -> None:
    """Trains attention in a class fixed before the data, on a law whose Bayes predictor is known and (nearly) in the class.

    Risks are exact sums, losses lie in [0, 1], spectral norms are kept by projection and certified afterwards. The bound on the
    excess risk is X5 for a minimiser, what training lost against the desired parameter, and that one's own excess.
    """
    from boundcalc.lab.latent.experiments.numbers import document
    from boundcalc.lab.train.desired import DesiredPlan, learned

    plan = DesiredPlan(**options)
    rows = learned(plan)
    headings = (
        *("L", "m", "excess risk", "low", "high", "its bound", "of constant 0", "gap", "X5"),
        *("attention apart", "value map apart", "above", "members"),
    )
    cells = [
        (
            *(row.length, row.m, row.excess.value, row.excess.low, row.excess.high, ceiling(row.bound), row.ignorant),
            *(row.gap.value, ceiling(row.x5), row.apart.value, row.map_apart.value, row.exceeded),
            f"{row.members}/{plan.seeds}",
        )
        for row in rows
    ]
    notes = [
        "attention apart: mean total variation of its weights from those of the desired parameter; above: models above "
        f"a bound; members: models whose certified norms keep the limits ({plan.C:g} and 1)",
    ]
    if any(row.x5 >= 1 for row in rows):
        notes.append(f"where X5 is above 1 it says nothing: {_ABOVE_ONE}")
    show(form, document("desired", plan, rows), headings, cells, notes)


@click.command(
    cls=FileCommand,
    short_help="One attention model from masked pretext to downstream task, beside X6.",
    epilog="""\b
Examples:
  boundcalc latent pretrain                                   a minute
  boundcalc latent pretrain --blur 0,0.4 --L 32 --draws 1000""",
)
@click.option(
    "--blur",
    "blurs",
    type=NUMBERS,
    default="0,0.25,0.3333333333333333,0.4,0.45",
    show_default=True,
    help="Of the pretext: how often it answers with a word's twin; at the middle L.",
)
@click.option("--L", "lengths", type=WHOLES, default="4,16,32,128", show_default=True, help="Tokens that inform.")
@click.option("--V", "words", type=WHOLE, default=6, show_default=True, help="Words, in pairs of twins.")
@click.option("--seeds", type=click.IntRange(2), default=4, show_default=True, help="Seeds per point.")
@click.option("--steps", type=WHOLE, default=1000, show_default=True, help="Most steps of training.")
@click.option("--delta", type=NUMBER, default=0.05, show_default=True, help="Failure probability.")
@click.option("--n-test", "fresh", type=WHOLE, default=20_000, show_default=True, help="Test examples.")
@click.option(
    "--draws",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Sets of 500 sequences per network, to count how often its bounds fall short.",
)
@form_option
def pretrain(form: str, lengths: tuple[int, ...], **options: Any) -> None:
    """Pretrains attention to guess masked tokens, freezes it, and asks it for a share of words that no label named.

    The pretext error has an upper limit from fresh sequences; X6 multiplies it by kappa^2. A head fitted to downstream
    labels on the frozen outputs, and one on those of networks after a single step, stand beside it.
    """
    from boundcalc.lab.latent.experiments.numbers import document
    from boundcalc.lab.train.pretext import PretextPlan, pretrained

    plan = PretextPlan(lengths=lengths, length=lengths[len(lengths) // 2], **options)
    rows = pretrained(plan)
    headings = (
        *("L", "blur", "kappa", "pretext error", "its limit", "head wM+", "low", "high", "X6"),
        *("fitted head", "untrained, fitted", "constant", "unknown", "above"),
    )
    cells = [
        (
            *(row.length, row.blur, row.kappa, row.pretext.value, ceiling(row.limit)),
            *(row.induced.value, row.induced.low, row.induced.high, ceiling(row.bound)),
            *(row.fitted.value, row.untrained.value, row.nothing, row.unknown, row.exceeded),
        )
        for row in rows
    ]
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
    show(form, document("pretrain", plan, rows), headings, cells, notes)


@click.command(
    cls=FileCommand,
    short_help="Masked patches of digits: a frozen network's worth against kappa.",
    epilog="""\b
Examples:
  boundcalc latent patches                                    a minute; needs scikit-learn
  boundcalc latent patches --asked 4,8 --seeds 2 --format json""",
)
@click.option(
    "--asked", type=WHOLES, default="3,4,5,6,8", show_default=True, help="Hidden places, of 8, with their answers."
)
@click.option("--m", "labels", type=WHOLES, default="20,100,500", show_default=True, help="Labels of fitted heads.")
@click.option("--V", "words", type=WHOLE, default=8, show_default=True, help="Words, made of patches.")
@click.option("--d", type=WHOLE, default=64, show_default=True, help="Width of a row.")
@click.option("--seeds", type=click.IntRange(2), default=4, show_default=True, help="Seeds per point.")
@click.option("--steps", type=WHOLE, default=1200, show_default=True, help="Most steps of training.")
@click.option("--delta", type=NUMBER, default=0.05, show_default=True, help="Failure probability.")
@click.option(
    "--n-test", "fresh", type=WHOLE, default=4000, show_default=True, help="Test examples, where words are drawn."
)
@form_option
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
    kinds = ("fitted", "untrained", "raw")
    headings = (
        *("law", "asked", "kappa", "pretext error", "its limit", "head wM+", "low", "high", "X6", "above"),
        *("10 digits: M+", *(f"{name} {m}" for m in plan.labels for name in kinds), "known"),
    )
    cells = [
        (
            *(row.law, row.asked, row.kappa, row.pretext.value, ceiling(row.limit)),
            *(row.induced.value, row.induced.low, row.induced.high),
            ("~" if row.kind == "estimate" else "") + str(ceiling(row.bound)),
            *(row.exceeded, row.without.value),
            *(getattr(row, name)[m].value for m in plan.labels for name in kinds),
            row.known.value,
        )
        for row in rows
    ]
    notes = [
        "head wM+ and X6: E(answer - w h)^2 over pairs of digits, as a share of the best constant's; 1 and more is worth "
        "nothing; these and kappa are geometric means over networks; above: pairs and networks above X6 (with ~ none can be: "
        "limit and error are of the same images)",
        "10 digits: test errors of the head M^+, of heads fitted to m labels, and of h itself (known); M is estimated from "
        "500 labels",
        "~: an estimate, as h is what would hold if the patches of an image were independent given its digit",
    ]
    show(form, document("patches", plan, rows), headings, cells, notes)


TRAINED = (minimal, learn, desired, pretrain, patches)
"""Commands of the group."""
