"""`boundcalc certify`."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.checkpoint import model_options, readout_budget, take, take_audit
from boundcalc.cli.files import FileCommand, Input, PythonName, output_folder
from boundcalc.cli.idle import refuse_given
from boundcalc.cli.lazy import FAILURE
from boundcalc.cli.options import bounds_option, certificate_options, form_option, why_option
from boundcalc.cli.theorem import refuse_idle_bits
from boundcalc.cli.values import NUMBER, WHOLE

if TYPE_CHECKING:
    from boundcalc.lab.certification import Certification

_NO_READ_OUT = ": say how large one may be with --readout-norm 1 (--classes 2)"


@click.command(
    cls=FileCommand,
    name="certify",
    short_help="A-posteriori bounds for a trained checkpoint.",
    epilog="""\b
Examples:
  boundcalc certify runs/bert --m 50000 --gamma 0.5 --train-error 0.03
  boundcalc certify mine.pt --compare model.py:make --data train.npz --test test.npz
  boundcalc certify mine.pt --compare model.py:make --data data.py:train_loader
  boundcalc certify runs/gpt2 --m 1e9 --T 128 --reference runs/gpt2-init --format json
  boundcalc certify model.safetensors --data examples.npz --by rule
\b
Norms are read off the weights and rounded up to a grid fixed in advance (1/16 times powers of 2^(1/8),
one budget for all blocks of a kind); gamma is rounded down to a power of 2, or with --data chosen among
them; a training error that was seen costs the number of theorems to choose from. All this is paid for
by P1, so the bounds hold although the weights were seen first. --fixed-gamma says that gamma was fixed
before the data.""",
)
@click.argument("model", type=Input())
@model_options
@click.option("--m", "n_train", type=WHOLE, help="Training sequences.")
@click.option("--delta", type=NUMBER, default=0.05, show_default=True, help="Failure probability.")
@click.option("--gamma", type=NUMBER, help="Margin of the ramp loss; with --data the best on the grid.")
@click.option("--bits", type=WHOLE, help="Bits of every stored weight, fixed before the data (16 for bfloat16): G13.")
@click.option("--fixed-gamma", is_flag=True, help="gamma was fixed before the data: it is not rounded nor paid for.")
@click.option("--train-error", type=NUMBER, help="Share of training margins at most gamma, as seen.")
@click.option(
    "--data",
    type=PythonName(),
    metavar="DATA",
    help="Examples: the training sequences with labels, as .npz, .csv, .parquet, a folder of a dataset's save_to_disk, or what "
    "a name in a Python file holds or gives (data.py:train: arrays, a dataset, a loader).",
)
@click.option(
    "--test", type=PythonName(), metavar="DATA", help="Test sequences, which the model has not met, likewise."
)
@click.option(
    "--by",
    "methods",
    multiple=True,
    type=click.Choice(("norms", "held-out", "occam", "p2l", "rule")),
    help="With --data, certify by this only (repeatable); p2l trains modules of --compare; rule stands alone, for models of "
    "boundcalc train.",
)
@bounds_option
@certificate_options("")
@click.option(
    "--certificates", type=output_folder(), help="Folder for the certificates: with --data, one of every line."
)
@click.option("--solve/--no-solve", default=True, help="Look for what would make the bound non-vacuous.")
@why_option
@form_option("table", "json", "csv", "markdown", "latex")
@click.pass_context
def command(
    context: click.Context,
    model: str,
    n_train: int | None,
    delta: float,
    gamma: float | None,
    bits: int | None,
    fixed_gamma: bool,
    train_error: float | None,
    data: str | None,
    test: str | None,
    methods: tuple[str, ...],
    bounds: tuple[str, ...],
    certificate: Path | None,
    certificate_risk: Path | None,
    certificates: Path | None,
    solve: bool,
    why: bool,
    form: str,
    readout_norm: float | None,
    schatten: float | None,
    **options: Any,
) -> None:
    """Bounds for a model as it was trained: its norms are measured, and having looked at them is paid for."""
    if "rule" in methods:
        from boundcalc.cli.rules import certify_by_rule

        if methods != ("rule",):
            raise InvalidSetting("--by rule stands alone: it looks at weights that the other methods only measure")
        certify_by_rule(context, model, data, delta, certificates, form)
        return
    if why and form not in ("table", "json"):
        raise InvalidSetting(f"--why is written as table or json: leave out --format {form}, or --why")
    if data is not None:
        why_not = "with --data, which says it"
        refuse_given({"n_train": why_not, "train_error": why_not})
        refuse_given({"readout_norm": "with --data: a model without a read-out answers nothing"})
        if form not in ("table", "json"):
            raise InvalidSetting(f"--data is written as table or json: leave out --format {form}, or --data")
    else:
        refuse_given(dict.fromkeys(("test", "methods", "certificates"), "without --data"))
    seen = None if data is not None else _sample(n_train, delta, gamma, fixed_gamma, train_error)

    from boundcalc.lab.reading import whole

    inspect = whole(model, _NO_READ_OUT if readout_norm is None else None)
    from boundcalc.setting import Setting

    certified = None
    if data is not None:
        certified = _with_data(model, data, test, methods, options, inspect, bits, delta, gamma, fixed_gamma, schatten)
        found, setting = certified.audit, certified.setting
    else:
        assert seen is not None  # noqa: S101 - without data the sample is said
        found = take_audit(model, options, inspect)
        found = found if bits is None else found.with_bits(bits)
        norms = found.norms(schatten, readout_budget(found, readout_norm))
        setting = Setting(found.architecture, norms, seen)
    from boundcalc.cli.report import ask, write_certificates
    from boundcalc.cli.setting import Question

    # what the model's files say is not assumed; where they say nothing, it is
    read = {field.name for field in fields(found.architecture)} - set(found.account.assumed)
    given = ["n_train", "delta"]
    given += ["margin"] * (gamma is not None or data is not None)
    given += ["train_error"] * (train_error is not None or data is not None)
    origin = dict.fromkeys((*read, "C", "norms"), "file") | dict.fromkeys(given, "given")
    if bits is not None:
        origin["bits"] = "given"
    question = Question(setting, origin)
    refuse_idle_bits(question, bounds)
    report = ask(question, bounds, solve=solve, why=why)
    best = None if report.best is None else report.best.recording(found.compared)
    write_certificates(best, certificate, certificate_risk)
    written = [] if certified is None or certificates is None else certified.save(certificates)
    if certified is not None and form == "table":
        click.echo(certified.text)
        if written:
            click.echo(f"{len(written)} certificates are in {certificates}: boundcalc verify {written[0]}")
        click.echo("\nThe norm bounds in full:\n")
    if form in ("table", "json"):
        from boundcalc.cli import certify_report

        if form == "table":
            certify_report.table(found, report, setting)
        else:
            certify_report.as_json(found, report, setting, certified)
    else:
        from boundcalc.cli.formats import show

        show(report, form)
    if report.best is None:
        context.exit(FAILURE)


def _with_data(
    model: str,
    data: str,
    test: str | None,
    methods: tuple[str, ...],
    options: dict[str, Any],
    inspect: Any,
    bits: int | None,
    delta: float,
    gamma: float | None,
    fixed_gamma: bool,
    schatten: float | None,
) -> Certification:
    """The table of every method that applies."""
    from boundcalc.checkpoints.data import sequences
    from boundcalc.lab.certify import answered, wanted_methods
    from boundcalc.lab.outputs import Outputs

    make, seed, reference = None, options["seed"] or 0, options["reference"]
    if "p2l" in methods:
        if options["compare"] in (None, "transformers"):
            raise InvalidSetting("--by p2l trains modules of its own: say what makes one, --compare module.py:make")
        from boundcalc.base.load import load_name

        make = load_name(options["compare"])
    wanted = wanted_methods(methods or None, test, make)
    known, tests = sequences(data), None if test is None else sequences(test)
    say = None if options["quiet"] or not sys.stderr.isatty() else lambda text: click.echo(f"{text} ...", err=True)
    taken = take(model, options, inspect, known)
    return answered(
        Outputs(taken.model, taken.audit if bits is None else taken.audit.with_bits(bits), taken.live),
        known,
        tests,
        delta=delta,
        gamma=gamma,
        bounds=("best",),
        methods=wanted,
        make=make,
        seed=seed,
        mapping=taken.mapping,
        progress=say or (lambda _: None),
        fixed_gamma=fixed_gamma,
        power=schatten,
        reference=reference,
    )


def _sample(n_train: int | None, delta: float, gamma: float | None, fixed: bool, error: float | None) -> Any:
    """The sample as it was seen."""
    from boundcalc.setting import Sample
    from boundcalc.setting.sample import MARGIN

    if n_train is None:
        raise InvalidSetting("say how many training sequences there were: --m 50000 (or give them: --data)")
    measured = tuple(
        name
        for name, there in (("margin", not fixed and gamma is not None), ("train_error", error is not None))
        if there
    )
    return Sample(n_train, delta, MARGIN if gamma is None else gamma, error or 0.0, measured=measured)
