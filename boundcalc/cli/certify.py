"""`boundcalc certify`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.checkpoint import model_options, readout_budget, take, take_audit, teller
from boundcalc.cli.files import FileCommand, Input, PythonName, output_folder
from boundcalc.cli.idle import refuse_given, refuse_idle
from boundcalc.cli.lazy import FAILURE
from boundcalc.cli.options import bounds_option, certificate_options, form_option, why_option, write_json
from boundcalc.cli.text import room, say
from boundcalc.cli.theorem import refuse_idle_bits
from boundcalc.cli.values import NUMBER, WHOLE

if TYPE_CHECKING:
    from boundcalc.lab.certification import Certification

_NO_READ_OUT = ": say how large one may be with --readout-norm 1 (--classes 2)"


@click.command(
    cls=FileCommand,
    epilog="""\b
Examples:
  boundcalc certify runs/bert --m 50000 --gamma 0.5 --train-error 0.03
  boundcalc certify mine.pt --compare model.py:make --data train.npz --test test.npz
  boundcalc certify predictions.csv
  boundcalc certify ours.csv --against theirs.csv --groups document --looks 3
  boundcalc certify mine.pt --compare model.py:make --data data.py:train_loader --test test.csv --groups document
  boundcalc certify runs/gpt2 --m 1e9 --T 128 --reference runs/gpt2-init --format json
  boundcalc certify model.safetensors --data examples.npz --by rule

Norms are read off the weights and rounded up to a grid fixed in advance (1/16 times powers of 2^(1/8),
one budget for all blocks of a kind); gamma is rounded down to a power of 2, or with --data chosen among
them. A training error read off the data costs the number of theorems to choose from. P1 adds the cost of
these choices to log(1/delta), so the bounds hold although norms were measured after training. --fixed-gamma
says that gamma was fixed before the data.""",
)
@click.argument("model", type=Input())
@model_options
@click.option("--m", "n_train", type=WHOLE, help="Training sequences.")
@click.option("--delta", type=NUMBER, default=0.05, show_default=True, help="Failure probability.")
@click.option("--gamma", type=NUMBER, help="Margin of the ramp loss; with --data the best on the grid.")
@click.option("--bits", type=WHOLE, help="Bits of every stored weight, fixed before the data (16 for bfloat16): G13.")
@click.option(
    "--fixed-gamma", is_flag=True, help="gamma was fixed before the data: it is not rounded, and needs no correction."
)
@click.option("--train-error", type=NUMBER, help="Observed share of training margins at most gamma.")
@click.option(
    "--data",
    type=PythonName(),
    metavar="DATA",
    help="Examples: the training sequences with labels, as .npz, .csv, .parquet, a folder of a dataset's save_to_disk, "
    "or FILE.py:NAME (arrays, a dataset, a loader, or a function that returns one).",
)
@click.option(
    "--test", type=PythonName(), metavar="DATA", help="Test sequences, which the model has not met, likewise."
)
@click.option(
    "--against",
    type=PythonName(),
    metavar="OTHER",
    help="Another model on the same test examples: an exact paired test, and an interval of the difference. A file of "
    "predictions or a column of MODEL's; of a module FILE.py:NAME, a trained module or a function.",
)
@click.option(
    "--groups",
    metavar="COLUMN",
    help="Of the test examples: the column that says what each belongs to; each group has one vote.",
)
@click.option(
    "--looks", type=WHOLE, default=1, show_default=True, help="Models or looks at these examples that share delta."
)
@click.option(
    "--largest-weight",
    type=NUMBER,
    help="Of predictions with a column weight: the largest that an example can have, fixed before the examples were "
    "drawn.",
)
@click.option(
    "--by",
    "methods",
    multiple=True,
    type=click.Choice(("norms", "held-out", "occam", "p2l", "rule")),
    help="With --data, certify by this only (repeatable); p2l trains modules of --compare; rule stands alone, for "
    "models of boundcalc train.",
)
@bounds_option
@certificate_options("")
@click.option(
    "--certificates", type=output_folder(), help="Folder for the certificates: with --data, one of every line."
)
@click.option("--solve/--no-solve", default=True, help="Look for what would make the bound non-vacuous.")
@why_option
@click.option("-v", "--verbose", is_flag=True, help="With --data: the report of the norm bounds after the verdict.")
@form_option("table", "json", "csv")
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
    against: str | None,
    groups: str | None,
    looks: int,
    largest_weight: float | None,
    methods: tuple[str, ...],
    bounds: tuple[str, ...],
    certificate: Path | None,
    certificate_risk: Path | None,
    certificates: Path | None,
    solve: bool,
    why: bool,
    verbose: bool,
    form: str,
    readout_norm: float | None,
    schatten: float | None,
    **options: Any,
) -> None:
    """What is proved of a model as it was trained, or of the answers it gave."""
    if Path(model).suffix in (".csv", ".parquet"):
        _predictions(context, model, against, groups, looks, delta, largest_weight, certificates, form)
        return
    refuse_given({"largest_weight": "of a model: a column of weights belongs to a file of predictions"})
    if "rule" in methods:
        from boundcalc.cli.rules import certify_by_rule

        if methods != ("rule",):
            raise InvalidSetting(
                "--by rule cannot be combined: it reads the weights that the other methods only measure"
            )
        certify_by_rule(context, model, data, delta, certificates, form)
        return
    if why and form not in ("table", "json"):
        raise InvalidSetting(f"--why is written as table or json: leave out --format {form}, or --why")
    given_examples = data is not None or test is not None
    for name, value in {"--against": against, "--groups": groups}.items():
        if value is not None and test is None:
            raise InvalidSetting(f"{name} is of test examples: --test FILE")
    if given_examples:
        why_not = "with --data or --test, which say it"
        refuse_given({"n_train": why_not, "train_error": why_not})
        refuse_given({"readout_norm": "with --data or --test: a model without a read-out answers nothing"})
        if form not in ("table", "json"):
            raise InvalidSetting(f"a verdict is written as table or json: leave out --format {form}")
        in_full = verbose or why or form == "json"
        if not in_full:
            refuse_idle({"solve": "verbose"})
    else:
        refuse_given(dict.fromkeys(("methods", "certificates", "looks", "verbose"), "without --data or --test"))
        in_full = True
    seen = None if given_examples else _sample(n_train, delta, gamma, fixed_gamma, train_error)

    from boundcalc.lab.reading import reject_incomplete

    lacking = _NO_READ_OUT if readout_norm is None else None
    inspect = reject_incomplete(model) if given_examples else reject_incomplete(model, lacking)
    from boundcalc.cli.report import ask, write_certificates
    from boundcalc.setting import Setting

    certified = None
    if given_examples:
        certified = _with_data(
            model,
            data,
            test,
            options,
            inspect,
            bits,
            {
                "methods": methods,
                "delta": delta,
                "gamma": gamma,
                "fixed_gamma": fixed_gamma,
                "bounds": bounds or ("best",),
                "power": schatten,
                "against": against,
                "groups": groups,
                "looks": looks,
            },
        )
        written = [] if certificates is None else certified.save(certificates)
        if form == "table":
            _print(certified, certificates, written)
        audit, setting = certified.audit, certified.setting
        if audit is None or setting is None or "norms" not in (methods or ("norms",)):
            if certificate is not None or certificate_risk is not None:
                raise InvalidSetting(
                    "--certificate writes a norm bound, and there is none; --certificates FOLDER writes all"
                )
            if form == "json":
                write_json(certified.to_json())
            return
        if not in_full:
            best = next((value for value in certified.bounds if value.name == "best"), None)
            write_certificates(best, certificate, certificate_risk)
            return
    else:
        assert seen is not None  # noqa: S101 - without data the sample is given by options
        audit = take_audit(model, options, inspect)
        audit = audit if bits is None else audit.with_bits(bits)
        norms = audit.norms(schatten, readout_budget(audit, readout_norm))
        setting = Setting(audit.architecture, norms, seen)
    from boundcalc.cli.setting import Question

    # what the model's files say is not assumed; where they are silent, it is
    read = {field.name for field in fields(audit.architecture)} - set(audit.account.assumed)
    typed = ["n_train", "delta"]
    typed += ["margin"] * (gamma is not None or given_examples)
    typed += ["train_error"] * (train_error is not None or given_examples)
    origin = dict.fromkeys((*read, "C", "norms"), "file") | dict.fromkeys(typed, "given")
    if bits is not None:
        origin["bits"] = "given"
    question = Question(setting, origin)
    refuse_idle_bits(question, bounds)
    report = ask(question, bounds, solve=solve, why=why)
    best = None if report.best is None else report.best.recording(audit.compared)
    write_certificates(best, certificate, certificate_risk)
    if certified is not None and form == "table":
        say("\nThe norm bounds in full:\n")
    if form in ("table", "json"):
        from boundcalc.cli import certify_report

        if form == "table":
            certify_report.table(audit, report, setting, more=certified is not None)
        else:
            certify_report.as_json(audit, report, setting, certified)
    else:
        from boundcalc.cli.formats import show

        show(report, form)
    if report.best is None:
        context.exit(FAILURE)


def _predictions(
    context: click.Context,
    file: str,
    against: str | None,
    groups: str | None,
    looks: int,
    delta: float,
    largest_weight: float | None,
    certificates: Path | None,
    form: str,
) -> None:
    """The verdict on a file of predictions."""
    from boundcalc.lab.predictions import certify_predictions

    takes = ("model", "against", "groups", "looks", "delta", "largest_weight", "certificates", "form", "force")
    others = sorted(name for name in context.params if name not in takes)
    refuse_given(dict.fromkeys(others, "of predictions, of which only the answers are known"))
    if form not in ("table", "json"):
        raise InvalidSetting(f"a verdict is written as table or json: leave out --format {form}")
    certification = certify_predictions(
        file, against=against, groups=groups, looks=looks, delta=delta, largest_weight=largest_weight
    )
    written = [] if certificates is None else certification.save(certificates)
    if form == "json":
        write_json(certification.to_json())
        return
    _print(certification, certificates, written)


def _print(certification: Certification, folder: Path | None, written: list[Path]) -> None:
    """The verdict and the table, and where the certificates are."""
    click.echo(certification.text(min(120, room() or 120)))
    if written:
        count = f"{len(written)} certificates are" if len(written) > 1 else "1 certificate is"
        say(f"{count} in {folder}: boundcalc verify {written[0]}")


def _with_data(
    model: str,
    data: str | None,
    test: str | None,
    options: dict[str, Any],
    inspect: Any,
    bits: int | None,
    wishes: dict[str, Any],
) -> Certification:
    """The table of every method that applies."""
    from boundcalc.base.files import load_name
    from boundcalc.checkpoints.data import sequences
    from boundcalc.lab.certify import answered, wanted_methods, with_groups
    from boundcalc.lab.methods import Request

    make, seed, reference = None, options["seed"] or 0, options["reference"]
    methods, against, groups = wishes.pop("methods"), wishes.pop("against"), wishes.pop("groups")
    if "p2l" in methods:
        if options["compare"] in (None, "transformers"):
            raise InvalidSetting("--by p2l trains modules of its own: say what makes one, --compare module.py:make")
        make = load_name(options["compare"])
    wanted = wanted_methods(methods or None, data, test, make)
    training, tests = None if data is None else sequences(data), with_groups(test, groups)
    say = teller()
    other = None if against is None else load_name(against)
    request = Request(wanted, **wishes, reference=reference, make=make, seed=seed, against=other)
    return answered(take(model, options, inspect, training or tests, bits), training, tests, request, say)


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
