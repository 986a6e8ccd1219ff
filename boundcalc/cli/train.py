"""`boundcalc train`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import assignments
from boundcalc.base.rounding import down, near, percent, short, up
from boundcalc.cli import predictors
from boundcalc.cli.files import FileCommand, output_file
from boundcalc.cli.idle import refuse_given
from boundcalc.cli.learning import say_positions
from boundcalc.cli.progress import Live
from boundcalc.cli.report_text import NO_MEMBER, VACUOUS, amount
from boundcalc.cli.text import Line, say, write_table
from boundcalc.cli.values import NUMBER, WHOLE, pairs
from boundcalc.lab.train.trial import N_TEST, Optimisation

if TYPE_CHECKING:
    from boundcalc.lab.train.trial import Trial

_FIELDS = {
    "task": ("T", "s", "function"),
    "model": ("depth", "d", "heads"),
    "init": (),
    "train": ("lr", "batch", "steps"),
}
"""Fields of a trial's parts that have an option of their own."""
_DATA = (".npz", ".csv", ".parquet")


def _certificates(file: Path, values: Mapping[str, Any]) -> list[Path]:
    """One file, or one for each of several methods; and the weights that a rule is proved of."""
    files = predictors.certificate_files(file, values["methods"])
    return [*files.values(), *(predictors.weights_file(path) for name, path in files.items() if name == "rule")]


@click.command(
    cls=FileCommand,
    epilog="""\b
Examples:
  boundcalc train conjunction --T 64 --m 64
  boundcalc train parity --T 12 --s 2 --m 0 --batch 128 --set train.warmup=50 --set train.stop_test_error=0
  boundcalc train boolean --function "x0 & ~x1 | x2" --T 32 --m 200 --set task.law=natural
  boundcalc train data.npz --m 500 --depth 2
  boundcalc train conjunction --T 128 --m 1000 --certify all --certificate risk.json --examples examples.npz
  boundcalc train conjunction --m 64 --ball W_1=op:2 --ball W_V=21:4 -o model.safetensors""",
)
@click.argument("task")
@click.option("--T", "T", type=WHOLE, help="Rows (bits) per sequence.")
@click.option("--s", "s", type=WHOLE, help="Bits that matter.")
@click.option("--function", help="Truth table or formula (task boolean).")
@click.option("--m", "m", type=WHOLE, default=64, show_default=True, help="Training examples (0: fresh at every step).")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="Random seed.")
@click.option("--depth", type=WHOLE, help="Blocks.")
@click.option("--d", "d", type=WHOLE, help="Width of a row.")
@click.option("--heads", type=WHOLE, help="Attention heads per block.")
@click.option("--lr", type=NUMBER, default=Optimisation.lr, show_default=True, help="Learning rate.")
@click.option("--batch", type=WHOLE, default=Optimisation.batch, show_default=True, help="Examples per step (0: all).")
@click.option("--steps", type=WHOLE, default=Optimisation.steps, show_default=True, help="Most steps of training.")
@click.option("--ball", "balls", multiple=True, metavar="KIND=NORM:R", help="Keep weights in a norm ball (op, F, 21).")
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="n_test, or a field of task., model., init., train."
)
@click.option("--gamma", type=NUMBER, default=1.0, show_default=True, help="Margin of the ramp loss.")
@click.option("-o", "--out", "save", type=output_file(), help="Write the model (safetensors).")
@click.option("--store", "store_path", type=output_file(appends=True), help="Keep the result.")
@predictors.certify_options
@click.option("--certificate", type=output_file(_certificates), help="Write the certificate (JSON).")
@click.option("--examples", type=output_file(), help="Write the training examples (.npz).")
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True)
def command(
    save: Path | None,
    store_path: Path | None,
    methods: tuple[str, ...],
    certificate: Path | None,
    examples: Path | None,
    prefix: float,
    form: str,
    gamma: float,
    delta: float,
    **options: Any,
) -> None:
    """Train one model on TASK (a task, a file of examples, or module.py:MyTask), then print its gap and all bounds.

    Bounds are a posteriori: they hold for the norms that were measured, corrected for choosing them after training.
    """
    from boundcalc.base import validate

    validate.positive("gamma", gamma)
    validate.fraction("delta", delta, ends=False)
    if save is not None:
        output.safetensors_name(save)
    if not methods and (certificate is not None or prefix):
        raise InvalidSetting("--certificate and --prefix belong to --certify: say by which method, such as p2l")
    if options["m"] == 0:
        why = "without a training sample (--m 0), which bounds need"
        refuse_given({"gamma": why} | ({} if methods else {"delta": why}))
    trial = _trial(options)  # its mistakes are reported before torch is imported, which takes seconds
    for file in (save, examples):
        if file is not None:
            output.check(file)  # again, now that the files the task reads are known

    import torch

    from boundcalc.lab.train.trainer import train

    torch.set_num_threads(1)
    say_positions([trial])
    live = Live()
    outcome = train([trial], live=lambda state: live.show(_newest(state)))[0]
    live.end()  # what differs between two runs goes to stderr, so that standard output does not differ
    click.echo(f"{near(outcome.result['cpu_seconds'])} CPU-s", err=True)
    if save is not None:
        from boundcalc.predictors.rules.certify import StoredNetwork

        StoredNetwork(trial.model, outcome.arrays).save(save)
    if store_path is not None:
        from boundcalc.lab.train.store import Store

        with Store(store_path) as store:
            store.add(trial, outcome.result)
    if examples is not None:
        predictors.write_examples(trial, examples)
    certificates: list[dict[str, Any]] = []
    if methods:
        certificates = predictors.certify_trial(trial, methods, delta, prefix=prefix, file=certificate)
    values = _bounds(trial, outcome.result, gamma, delta)
    if form == "json":
        document = {"trial": trial.to_json(), "hash": trial.hash, "result": outcome.result}
        if methods:
            document["certificates"] = certificates
        click.echo(json.dumps({**document, "bounds": [value.to_json() for value in values]}, indent=1))
    else:
        _show(trial, outcome.result, values, gamma, delta)
        if certificates:
            predictors.show_certificates(certificates, delta)
    if outcome.result["status"] == "diverged":
        raise click.ClickException(f"training {outcome.result['reason']} after {outcome.result['steps']} steps")


def _trial(options: Mapping[str, Any]) -> Trial:
    """The trial that the options describe, on the CPU."""
    from boundcalc.lab.train.trial import trial_from_parts

    parts: dict[str, dict[str, Any]] = {
        part: {name: options[name] for name in names if options[name] is not None} for part, names in _FIELDS.items()
    }
    is_data = Path(options["task"]).suffix in _DATA
    parts["task"] |= {"task": "arrays", "path": options["task"]} if is_data else {"task": options["task"]}
    if options["balls"]:
        parts["train"]["balls"] = _balls(options["balls"])
    changes = assignments(options["changes"], "--set")
    n_test = changes.pop("n_test", N_TEST)
    refuse_given(
        {name.partition(".")[2]: f"besides --set {name}" for name in changes if name.partition(".")[2] in options}
    )
    for name, value in changes.items():
        part, _, field = name.partition(".")
        if part not in parts or not field:
            raise InvalidSetting(f"--set takes n_test, or task., model., init. or train. and a field, got {name!r}")
        parts[part][field] = value
    model = parts["model"]
    if "d" in model and model.get("style") != "edelman":
        model.setdefault("d_ff", 4 * model["d"])
    if parts["task"]["task"] == "boolean" and "function" not in parts["task"]:
        raise InvalidSetting(
            'task boolean needs a function: --function "x0 & ~x1 | x2", or a truth table such as 00010111 '
            "(conjunction, disjunction, parity and majority are tasks of their own)"
        )
    return trial_from_parts(**parts, m=options["m"], seed=options["seed"], n_test=n_test)


def _balls(words: tuple[str, ...]) -> dict[str, Any]:
    balls: dict[str, Any] = {}
    for kind, ball in pairs("--ball", words, "W_QK=op:2").items():
        norm, _, radius = ball.partition(":")
        try:
            balls[kind] = [norm, float(radius)]
        except ValueError:
            raise InvalidSetting(f"--ball takes KIND=NORM:RADIUS, such as W_QK=op:2; got {ball!r}") from None
    return balls


def _bounds(trial: Trial, result: dict[str, Any], gamma: float, delta: float) -> list[Any]:
    from boundcalc import compare
    from boundcalc.lab.train.bounds import setting_of
    from boundcalc.theorems import POLICIES

    if trial.online or "norms" not in result or "margins" not in result["train"]:
        return []
    return compare(setting_of(trial, result, margin=gamma, delta=delta), list(POLICIES))


def _newest(state: Mapping[str, Any]) -> str:
    """The newest point of the curves."""
    point = state["points"][0]
    parts = (
        f"{part} loss {near(point[f'{part}_loss'])} error {near(point[f'{part}_error'])}" for part in ("train", "test")
    )
    return "  ".join([f"step {state['step']:>6} of {state['steps']}", *parts])


def _show(trial: Trial, result: dict[str, Any], values: list[Any], gamma: float, delta: float) -> None:
    length = "T" if hasattr(trial.task, "T") else "L"
    rows = getattr(trial.task, length, trial.architecture.seq_len)
    size = "fresh examples" if trial.online else f"m = {trial.m}"
    test, train = result["test"], result["train"]
    low, high = test["interval"]
    say(
        f"test error {near(test['error'])} [{down(low)}, {up(high)}] of {test['n']} examples, after {result['steps']} "
        f"steps ({result['reason']})"
    )
    say(f"training error {near(train['error'])}, loss {near(train['loss'])}; test loss {near(test['loss'])}")
    for block, mass in enumerate(result.get("attention", [])):
        say(
            f"attention on the true coordinates, block {block}: best head {percent(mass['best_head'])}, "
            f"weighted by values {percent(mass['value_weighted'])}, mean {percent(mass['mean'])}"
        )
    say(
        f"trial {trial.hash[:12]}: {getattr(trial.task, 'function', trial.task.kind)}, {length} = {rows}, {size}, "
        f"depth {trial.architecture.depth}, d = {trial.architecture.d}, {trial.architecture.heads} heads"
    )
    if values:
        _show_bounds(values, gamma, delta)
    else:
        say("\nno bound: it needs a training sample (m > 0), a classification and finite weights")
    if "norms" in result:
        from boundcalc.base.schema import write
        from boundcalc.lab.train.bounds import by_block

        budgets = {key: write(budget) for key, budget in by_block(result).items()}
        kinds = list(dict.fromkeys(kind for budget in budgets.values() for kind, x in budget.items() if _is_norm(x)))
        rows = [
            Line([key, *(up(budget[name]) if name in budget else "" for name in kinds)])
            for key, budget in budgets.items()
        ]
        say()
        write_table(("norm (largest over heads)", *kinds), rows, right=frozenset(range(1, 1 + len(kinds))))


def _is_norm(value: Any) -> bool:
    return isinstance(value, float)


def _show_bounds(values: list[Any], gamma: float, delta: float) -> None:
    sample = values[0].setting.sample
    say()
    say(
        f"bounds of the gap (ramp loss of margin {short(gamma)}, delta {short(delta)}, share of training margins at "
        f"most gamma: {short(sample.train_error)}), corrected for norms chosen after training"
    )
    telling = [value for value in values if value.refusal is None and value.kind != "proxy"]
    if telling and all(value.vacuous for value in telling):
        say(f"none of {len(telling)} is below 1 at m = {sample.n_train}")
    say()
    write_table(("bound", "gap <=", "kind", "note"), [Line(_cells(value)) for value in values])


def _cells(value: Any) -> tuple[str, ...]:
    """A row of the table of bounds."""
    if value.refusal is not None:
        return (value.name, NO_MEMBER, "", f"needs {value.refusal.needs}")
    note = "every covering argument gives a bound above 1 here" if value.trivial else ""
    gap = VACUOUS if value.trivial else amount(value.log10)
    return (value.name, "~" * (value.kind == "proxy") + gap, value.kind.replace("_", " "), note)
