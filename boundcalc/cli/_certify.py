"""`boundcalc certify`: of a model with its data, of a file of predictions, of norms alone, of a rule."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import short, up
from boundcalc.base.schema import write
from boundcalc.cli._lazy import FAILURE
from boundcalc.cli._norms import (
    READING,
    account_lines,
    model_options,
    one_thread,
    take_audit,
)
from boundcalc.cli._options import (
    FILE_OR_FOLDER,
    NEW_FOLDER,
    assignments,
    bounds_option,
    command_with,
    form_option,
    option,
    refuse_given,
    refuse_others,
    several,
    write_json,
)
from boundcalc.cli._text import progress, room, say
from boundcalc.cli._verify import examples_of

_PREDICTIONS = (".csv", ".parquet")
_ALWAYS = ("model", "delta", "certificates", "form")
_OF_TEST = ("against", "groups", "looks")
_OF_DATA = (*READING, "data", "test", *_OF_TEST, "gamma", "bits", "methods")
_SAMPLE = {"n_train": "n_train", "delta": "delta", "gamma": "margin", "train_error": "train_error"}
"""Fields of the sample, by the names of their options."""
_METHODS = click.Choice(("norms", "held-out", "occam", "p2l", "rule"))


@command_with("""\
  boundcalc certify runs/bert --m 50000 --gamma 0.5 --train-error 0.03
  boundcalc certify mine.pt --compare model.py:make --data train.npz --test test.npz
  boundcalc certify predictions.csv
  boundcalc certify mine.pt --compare model.py:make --data data.py:train_loader --test test.csv --groups document
  boundcalc certify model.safetensors --data examples.npz --by rule

Norms are read off the weights and rounded up to a grid fixed in advance (1/16 times powers of 2^(1/8),
one budget for all blocks of a kind); gamma is rounded down to a power of 2, or with --data chosen among
them. A training error read off the data costs the number of theorems to choose from. P1 adds the cost of
these choices to log(1/delta), so the bounds hold although norms were measured after training.""")
@click.argument("model", type=FILE_OR_FOLDER)
@model_options
@option("--m n_train", int, "Training sequences, where they are not given.")
@option("--train-error", float, "Observed share of training margins at most gamma, likewise.")
@option("--delta", float, "Failure probability.", 0.05)
@option("--gamma", float, "Margin of the ramp loss; with --data the best on the grid.")
@option("--bits", int, "Bits of every stored weight, fixed before the data (16 for bfloat16): G13.")
@option(
    "--data",
    FILE_OR_FOLDER,
    "Examples: the training sequences with labels, as .npz, .csv, .parquet, or FILE.py:NAME "
    "(arrays, a dataset, a loader, or a function that returns one).",
    metavar="DATA",
)
@option("--test", FILE_OR_FOLDER, "Test sequences, which the model has not met, likewise.", metavar="DATA")
@option(
    "--against",
    FILE_OR_FOLDER,
    "Another model on the same test examples: an exact paired test, and an interval of the difference. A file of "
    "predictions or a column of MODEL's; of a module FILE.py:NAME, a trained module or a function.",
    metavar="OTHER",
)
@option(
    "--groups",
    str,
    "Of the test examples: the column that says what each belongs to; each group has one vote.",
    metavar="COLUMN",
)
@option("--looks", int, "Models or looks at these examples that share delta.", 1)
@option(
    "--largest-weight",
    float,
    "Of predictions with a column weight: the largest that an example can have, fixed before the examples were drawn.",
)
@several(
    "--by methods",
    "With --data, certify by this only (repeatable); p2l trains modules of --compare; rule stands alone, for models of "
    "boundcalc train.",
    kind=_METHODS,
)
@bounds_option
@option("--certificates", NEW_FOLDER, "Folder for the certificates, one of every line.")
@option("--no-solve", bool, "Do not look for the smallest m.")
@form_option("table", "json")
@click.pass_context
def command(context: click.Context, model: str, form: str, certificates: Path | None, **options: Any) -> None:
    """What is proved of a model as it was trained, or of the answers it gave."""
    methods, examples = options["methods"], options["data"] is not None or options["test"] is not None
    if Path(model).suffix in _PREDICTIONS:
        refuse_others("of predictions, of which only the answers are known", (*_ALWAYS, *_OF_TEST, "largest_weight"))
        proved = _examples(model, options, certificates, form)
    elif "rule" in methods:
        refuse_others("with --by rule, which reads the weights and --data alone", (*_ALWAYS, "data", "methods"))
        if methods != ("rule",):
            raise InvalidSetting("--by rule stands alone: it reads the weights that the other methods only measure")
        proved = _rule(model, options["data"], options["delta"], certificates, form)
    elif examples:
        refuse_others("with --data or --test, which say what is needed", (*_ALWAYS, *_OF_DATA))
        if options["test"] is None:
            refuse_given("without --test: it is of test examples", *_OF_TEST)
        proved = _examples(model, options, certificates, form)
    else:
        refuse_given("without --data or --test", "methods", *_OF_TEST, "largest_weight")
        proved = _norms(model, options, certificates, form)
    if not proved:
        context.exit(FAILURE)


def _examples(model: str, options: dict[str, Any], folder: Path | None, form: str) -> bool:
    """Print every certificate that applies, as `boundcalc.certify` gives it."""
    one_thread()
    from boundcalc.base.files import load_name
    from boundcalc.lab.certify import certify

    names = ("family", "mapping", "reference", "seq_len", "heads", "input_radius", "seed", "data", "test")
    names += ("groups", "looks", "delta", "gamma", "bits", "largest_weight")
    make, against = None, options["against"]
    if against is not None and Path(model).suffix not in _PREDICTIONS:
        against = load_name(against)
    if "p2l" in options["methods"]:
        if options["compare"] in (None, "transformers"):
            raise InvalidSetting("--by p2l trains modules of its own: say what makes one, --compare module.py:make")
        make = load_name(options["compare"])
    with progress() as show:
        certification = certify(
            model,
            **{name: options[name] for name in names},
            settings=assignments(options["settings"]),
            module=options["compare"],
            methods=options["methods"] or None,
            against=against,
            make=make,
            progress=lambda text: show(f"{text} ..."),
        )
    written = [] if folder is None else certification.save(folder)
    if form == "json":
        write_json(certification.to_json())
    else:
        click.echo(certification.text(min(120, room() or 120)))
        _say_written(folder, written)
    return True


def _say_written(folder: Path | None, written: list[Path]) -> None:
    if written:
        count = f"{len(written)} certificates are" if len(written) > 1 else "1 certificate is"
        say(f"{count} in {folder}: boundcalc verify {written[0]}")


# -- by a rule


def _rule(model: str, data: str | None, delta: float, folder: Path | None, form: str) -> bool:
    """Print what a network on bits provably computes and the bound of its risk; whether anything is proved."""
    from boundcalc.base.output import make_folder
    from boundcalc.predictors.rules.certify import facts_of_rule, function_of
    from boundcalc.predictors.rules.search import explain_network

    if folder is not None and data is None:
        raise InvalidSetting("--certificates with --by rule needs the training examples: --data FILE")
    with progress() as tell:
        examples = None if data is None else examples_of(data)
        explanation = explain_network(model, examples, delta=delta, progress=lambda text: tell(f"{text} ..."))
    certificate, proved, where = explanation.certificate, explanation.proved, explanation.counterexample
    file = None
    if certificate is not None and folder is not None:
        file = make_folder(folder) / "rule.json"
        certificate.save(file)
    if form == "json":
        answers = {"model": model, "text": str(explanation), "rule": write(explanation.rule, complete=True)}
        answers |= {"proved": proved is not None, "margin": explanation.margin, "counterexample": where and str(where)}
        summary = certificate and {**certificate.summary(), **facts_of_rule(certificate)}
        write_json(answers | {"certificate": summary, "file": file and str(file)})
        return proved is not None
    say(str(explanation))
    if proved is not None and explanation.margin is not None:
        function = function_of(proved.rounding, explanation.margin)
        say(f"{len(proved.values)} parts in ball arithmetic, {function}")
        if where is not None:
            say(f"it differs from {explanation.rule} at {where}")
    if file is not None:
        say(f"{file}: boundcalc verify {file} --model {model}")
    return proved is not None


# -- by norms, without data


def _norms(model: str, options: dict[str, Any], folder: Path | None, form: str) -> bool:
    """Print every bound that the norms of a checkpoint give; whether there is any."""
    from boundcalc.cli._eval import refuse_idle_bits
    from boundcalc.cli._report import ask, show
    from boundcalc.cli._setting import Question
    from boundcalc.engine.evaluate import Evaluator
    from boundcalc.lab.certification import Certification, of_bound
    from boundcalc.setting import Sample, Setting

    if options["n_train"] is None:
        raise InvalidSetting("say how many training sequences there were: --m 50000 (or give them: --data)")
    typed = {name: options[key] for key, name in _SAMPLE.items() if options[key] is not None}
    chosen = tuple(name for name in ("margin", "train_error") if name in typed)
    audit = take_audit(model, options, refused=True)
    audit = audit if options["bits"] is None else audit.with_bits(options["bits"])
    setting = Setting(audit.architecture, audit.norms(), Sample(**typed, measured=chosen))
    # what the model's files say is not assumed; where they are silent, it is
    read = {field.name for field in fields(audit.architecture)} - set(audit.account.assumed)
    named = {*typed, *(["bits"] if options["bits"] is not None else [])}
    question = Question(setting, named, {*named, *read, "C", "norms"})
    refuse_idle_bits(question, options["bounds"])
    report = ask(question, options["bounds"], solve=not options["no_solve"])
    best = report.best()
    bounds = () if best is None else (best.recording(audit.compared),)
    certification = Certification(audit.where, tuple(map(of_bound, bounds)), setting.sample.delta, bounds=bounds)
    written = [] if folder is None else certification.save(folder)
    if folder is not None and not written:
        raise click.ClickException("every bound is trivial: there is no proof to write")
    measured = Evaluator(setting)
    if form == "json":
        check = {"model": audit.where, "family": audit.family, "forward_check": audit.to_json()["forward_check"]}
        write_json({**report.to_json(), **check, "p1": measured.log_union})
    else:
        head = [certification.verdict, "", f"{audit.where}: family {audit.family}", *account_lines(audit), ""]
        say("\n".join(head))
        show(report)
        nats = -math.log(setting.sample.delta)
        say(
            f"Cost of choosing norms after training (P1): they are rounded up to the grid, gamma is "
            f"{short(measured.paid.sample.margin)}; log(1/delta) grows from {up(nats, 3)} to "
            f"{up(measured.log_union + nats, 3)}."
        )
        _say_written(folder, written)
    return best is not None
