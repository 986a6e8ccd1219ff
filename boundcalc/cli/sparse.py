"""`boundcalc sparse`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import at_least, confidence, up
from boundcalc.cli.files import FileCommand, output_folder
from boundcalc.cli.options import bounds_option, form_option, write_json
from boundcalc.cli.values import NUMBER, WHOLE

if TYPE_CHECKING:
    from boundcalc.lab.represent.samples import SampleComplexity

FAMILIES = ("any", "symmetric", "threshold", "signed-symmetric", "signed-threshold")


@click.command(
    cls=FileCommand,
    name="sparse",
    short_help="What learning an s-sparse Boolean function of T bits takes.",
    epilog="""\b
Examples:
  boundcalc sparse --s 3 --T 512 --target 0.05 --delta 0.01
  boundcalc sparse --s 3 --T 4096 --compact
  boundcalc sparse --s 10 --T 512 --class threshold --format json
  boundcalc sparse --s 3 --T 512 --certificates proofs
  boundcalc sparse --symbolic
  boundcalc sparse --growth""",
)
@click.option("--s", "s", type=WHOLE, default=None, help="Bits that matter.")
@click.option("--T", "seq_len", type=WHOLE, default=None, help="Rows (bits) per sequence.")
@click.option("--target", "risk", type=NUMBER, default=0.05, show_default=True, help="Error probability asked for.")
@click.option("--delta", type=NUMBER, default=0.01, show_default=True, help="Failure probability.")
@click.option("--class", "name", type=click.Choice(FAMILIES), default="any", show_default=True, help="Which functions.")
@click.option("--compact", is_flag=True, help="Nearly orthonormal positions in few dimensions, instead of T.")
@bounds_option
@click.option(
    "--symbolic", is_flag=True, help="Formulas in s and T (class any, orthonormal positions, simple constants)."
)
@click.option(
    "--certificates",
    type=output_folder(),
    help="Folder for the certificates: one of every m, whose risk bound `boundcalc verify` re-derives.",
)
@click.option("--growth", is_flag=True, help="How the norms needed grow with s (at --T, default 512) and with T.")
@form_option("table", "json")
def command(
    s: int | None,
    seq_len: int | None,
    risk: float,
    delta: float,
    name: str,
    compact: bool,
    bounds: tuple[str, ...],
    symbolic: bool,
    certificates: Path | None,
    growth: bool,
    form: str,
) -> None:
    """Norms in which every function of the class has certified weights, and the samples each theorem then needs.

    Every m is a theorem for the class of networks with these norms at margin 1 and training error 0, its risk bound
    re-derived by the checker. Beside them stand the bound for a learner that knows the finite class, and the number of labels
    below which no learner can tell which bits matter.
    """
    if (growth or symbolic) and (compact or name != "any" or bounds or certificates is not None):
        raise InvalidSetting(
            f"--{'growth' if growth else 'symbolic'} has orthonormal positions and its own classes and bounds: leave out "
            "--class, --compact, --bound and --certificates"
        )
    if growth:
        if symbolic or s is not None:
            raise InvalidSetting("--growth goes through s by itself: leave out --s and --symbolic")
        _growth(512 if seq_len is None else seq_len, form)
        return
    if symbolic:
        _symbolic(s, seq_len, risk, delta, form)
        return
    if s is None or seq_len is None:
        raise InvalidSetting("give --s and --T, for instance --s 3 --T 512 (or --symbolic)")
    from boundcalc.lab.represent.samples import sample_complexity

    found = sample_complexity(
        s,
        seq_len,
        risk,
        delta,
        name=name,
        positions="compact" if compact else "orthonormal",
        policies=bounds,
    )
    written = [] if certificates is None else _certificates(found, certificates)
    if form == "json":
        write_json(found.to_json())
        return
    _show(found)
    if written:
        click.echo(f"\n{len(written)} certificates written to {certificates}; boundcalc verify {written[0]}")


def _certificates(found: SampleComplexity, folder: Path) -> list[Path]:
    """A file per bound, whose risk at its m is at most the one asked for."""
    written: list[Path] = []
    output.make_folder(folder)
    for row in found.rows:
        proof = None if row.solution is None else row.solution.bound.by_risk or row.solution.bound.by_gap
        if proof is not None:
            written.append(
                folder / f"{found.budgets.name}-s{found.budgets.s}-T{found.budgets.positions.count}-{row.policy}.json"
            )
            proof.certificate.save(written[-1])
    return written


def _show(found: SampleComplexity) -> None:
    from boundcalc.cli.text import Line, write_table
    from boundcalc.lab.represent.classes import CLASSES

    budgets, sample = found.budgets, found.setting.sample
    positions = budgets.positions
    where = "orthonormal" if positions.exact else f"compact (coherence {positions.coherence:g})"
    click.echo(
        f"Class      {CLASSES[budgets.name].title}, s {budgets.s}, T {positions.count}\n"
        f"Networks   one block, one head, {where} positions, d {budgets.width}, hidden units {budgets.units}, "
        f"beta {budgets.choice.beta:.4f}, margin 1\n"
        f"Asked      risk <= {found.risk:g} with probability {confidence(sample.delta)}, training error 0\n"
    )
    norms = [
        Line((key, *(up(x or 0.0) for x in (b.op, b.fro, b.two_one)), str(b.rank)))
        for key, b in budgets.norms.budgets.items()
    ]
    write_table(("norms needed", "op", "F", "21", "rank"), norms, right=frozenset(range(1, 5)))
    click.echo()
    lines: list[Line] = []
    for row in found.rows:
        if row.solution is None:
            lines.append(Line((row.policy, "-", "-", row.reason), "dim"))
            continue
        bound = row.solution.bound
        dominant = (bound.by_risk or bound.by_gap).dominant if bound.by_gap else None  # type: ignore[union-attr]
        share = f"{dominant[0]} {100 * dominant[1]:.0f}%" if dominant else ""
        lines.append(Line((row.policy, at_least(row.solution.value), bound.risk_strategy, share)))
    write_table(("bound", "smallest m", "strategy", "dominated by"), lines, right=frozenset({1}))
    click.echo(
        f"\nFinite class: {found.finite_class} samples suffice for a learner that knows the class (upper bound, realizable)."
        f"\nCounting floor: with fewer than {found.floor} labels no learner finds the bits that matter with probability 1/2."
    )


def _symbolic(s: int | None, seq_len: int | None, risk: float, delta: float, form: str) -> None:
    from boundcalc.lab.represent.symbolic import formulas, samples_needed

    found = formulas()
    numbers = None
    if s is not None and seq_len is not None:
        if not 1 <= 2 * s <= seq_len or s > 40:
            raise InvalidSetting(f"the formulas are for 2s <= T and s <= 40, got s = {s}, T = {seq_len}")
        numbers = samples_needed(s, seq_len, risk, delta)
    if form == "json":
        lines = [{"name": f.name, "meaning": f.meaning, "text": f.text, "latex": f.latex} for f in found]
        write_json({"formulas": lines, "m": numbers})
        return
    click.echo("Any s-sparse function of T >= 2s bits; r is the risk asked for, logarithms are natural.\n")
    for formula in found:
        click.echo(f"{formula.name}  ({formula.meaning})\n    {formula.text}")
    click.echo(
        "\nRate: m = O(4^s s^3 log^2(T/s) log(mT) / r). The norms beside |W_QK| do not depend on T; |W_QK| grows like log T."
    )
    if numbers is not None:
        click.echo(f"At s = {s}, T = {seq_len}, r = {risk:g}, delta = {delta:g}: m = {numbers}")


def _growth(seq_len: int, form: str) -> None:
    from boundcalc.cli.text import Line, write_table
    from boundcalc.lab.represent.growth import CLASSES, FITTED_FROM, GENERAL, LENGTHS, SYMMETRIC, S, growth

    if not 2 * SYMMETRIC[-1] <= seq_len <= LENGTHS[-1]:
        raise InvalidSetting(f"--growth is for T from {2 * SYMMETRIC[-1]} to {LENGTHS[-1]}, got {seq_len}")
    found = growth(seq_len)
    if form == "json":
        write_json(found.to_json())
        return
    click.echo(
        f"|W_QK|_F |W_V|_op |W_1|_op in which a class is represented at margin 1, T {seq_len}, orthonormal positions\n"
    )
    rows = sorted({*GENERAL, *SYMMETRIC})
    cells = [[f"{found.products[name][s]:.4g}" if s in found.products[name] else "-" for name in CLASSES] for s in rows]
    write_table(
        ("s", *CLASSES), [Line((str(s), *row)) for s, row in zip(rows, cells, strict=True)], right=frozenset(range(4))
    )
    click.echo(
        f"\nany: times {found.base:.2f} per bit, fitted over s = {FITTED_FROM}..{GENERAL[-1]} (last {found.last:.2f}; "
        f"{found.freed:.2f} once s^1.5 is divided out, s = 1..{GENERAL[-1]})"
    )
    for name, degree in found.degrees.items():
        click.echo(
            f"{name}: s^{degree:.2f}, fitted over s = {FITTED_FROM}..{SYMMETRIC[-1]} (at most s^{found.local[name]:.2f} "
            f"between neighbours)"
        )
    click.echo(
        f"|W_QK|_F of any function of {S} bits: {found.per_e_fold:.2f} more per e-fold of T, T = {LENGTHS[0]}..{LENGTHS[-1]} "
        f"(within {found.bend:.2f} of a line in log T); the other norms vary by a factor of {found.others:.3f}"
    )
