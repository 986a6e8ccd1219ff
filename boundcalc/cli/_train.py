"""`boundcalc train`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base import output, validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import confidence, down, near, percent, short, up
from boundcalc.cli._options import (
    NEW_FILE,
    NEW_FOLDER,
    STORE,
    all_of,
    assignments,
    command_with,
    form_option,
    option,
    refuse_given,
    several,
    write_json,
)
from boundcalc.cli._report import NO_MEMBER, cell
from boundcalc.cli._text import progress, say, write_table
from boundcalc.cli._verify import fact_shown
from boundcalc.lab.train.trial import METHODS, Optimisation, Request, wanted

if TYPE_CHECKING:
    from boundcalc.engine.bound import BoundValue
    from boundcalc.lab.train.trial import Trial

_FIELDS = {
    **{"task": ("T", "s"), "model": ("depth", "d", "heads")},
    **{"init": (), "train": ("steps",)},
}
"""Fields of a trial's parts that have an option of their own."""
_DATA = (".npz", ".csv", ".parquet")
certify_options = all_of(
    several(
        "--certify methods",
        "Certify a predictor's risk by this method, within --delta (repeatable).",
        kind=click.Choice((*METHODS, "all")),
    ),
    option("--delta", float, "Failure probability.", 0.05),
    option("--prefix", float, "Share of the examples that a rule is read off.", 0.0, show_default=False),
)
"""What is certified of what a trial's data teach, as `methods`, `delta` and `prefix`."""


@command_with("""\
  boundcalc train conjunction --T 64 --m 64
  boundcalc train boolean --set "task.function=x0 & ~x1 | x2" --T 32 --m 200 --set task.law=natural
  boundcalc train data.npz --m 500 --depth 2
  boundcalc train conjunction --T 128 --m 1000 --certify all --certificates proofs
  boundcalc train conjunction --m 64 --set 'train.balls={"W_V": ["21", 4]}' -o model.safetensors""")
@click.argument("task")
@option("--T T", int, "Rows (bits) per sequence.")
@option("--s", int, "Bits that matter.")
@option("--m", int, "Training examples (0: fresh at every step).", 64)
@option("--seed", int, "Random seed.", 0)
@option("--depth", int, "Blocks.")
@option("--d", int, "Width of a row.")
@option("--heads", int, "Attention heads per block.")
@option("--steps", int, "Most steps of training.", Optimisation.steps)
@several("--set changes", "n_test, or a field of task., model., init., train.", "NAME=VALUE")
@option("--gamma", float, "Margin of the ramp loss.", 1.0)
@option("-o --out save", NEW_FILE, "Write the model (safetensors).")
@option("--store store_path", STORE, "Keep the result.")
@certify_options
@option("--certificates", NEW_FOLDER, "Folder for the certificates and the training examples.")
@form_option("table", "json")
def command(save: Path | None, store_path: Path | None, certificates: Path | None, form: str, **options: Any) -> None:
    """Train one model on TASK (a task, a file of examples, or module.py:MyTask), then print its gap and all bounds.

    Bounds are a posteriori: they hold for the norms that were measured, corrected for choosing them after training.
    """
    methods, gamma, delta = options["methods"], options["gamma"], options["delta"]
    validate.positive("gamma", gamma)
    validate.fraction("delta", delta, ends=False)
    if save is not None:
        output.safetensors_name(save)
    if not methods:
        refuse_given("without --certify, which says by which method, such as p2l", "certificates", "prefix")
    if options["m"] == 0:
        why = "without a training sample (--m 0), which bounds need"
        refuse_given(why, "gamma", *([] if methods else ["delta"]))
    requests = [Request(name, delta, options["prefix"]) for name in wanted(methods)]
    trial = _trial(options)  # its mistakes are reported before torch is imported, which takes seconds
    files = [] if save is None else [save]
    if certificates is not None:  # of a folder that is not there yet they are new
        names = [f"{request.method}.json" for request in requests] + ["rule.safetensors", "examples.npz"]
        files += [certificates / name for name in names if certificates.exists()]
    for file in files:  # now that the files the task reads are known
        output.check(file)
    output.apart(files)

    import torch

    from boundcalc.lab.train.trainer import train

    torch.set_num_threads(1)
    with progress(0) as show:
        outcome = train([trial], live=lambda state: show(_newest(state)))[0]
    # what differs between two runs goes to stderr, so that standard output does not differ
    click.echo(f"{near(outcome.result['cpu_seconds'])} CPU-s", err=True)
    if save is not None:
        from boundcalc.predictors.rules.certify import StoredNetwork

        StoredNetwork(trial.model, outcome.arrays).save(save)
    if store_path is not None:
        from boundcalc.lab.train.store import Store

        with Store(store_path) as store:
            store.add(trial, outcome.result)
    entries = _certified(trial, requests, certificates)
    values = _bounds(trial, outcome.result, gamma, delta)
    if form == "json":
        document = {"trial": trial.to_json(), "hash": trial.hash, "result": outcome.result}
        document |= {"certificates": entries} if methods else {}
        write_json({**document, "bounds": [value.to_json() for value in values]})
    else:
        _show(trial, outcome.result, values, gamma, delta)
        if entries:
            show_certificates(entries, delta)
    if outcome.result["status"] == "diverged":
        raise click.ClickException(f"training {outcome.result['reason']} after {outcome.result['steps']} steps")


def _trial(options: Mapping[str, Any]) -> Trial:
    """The trial that the options describe, on the CPU."""
    from boundcalc.lab.train.sweep import changed, sweep_from_json

    parts: dict[str, dict[str, Any]] = {
        part: {name: options[name] for name in names if options[name] is not None} for part, names in _FIELDS.items()
    }
    is_data = Path(options["task"]).suffix in _DATA
    parts["task"] |= {"task": "arrays", "path": options["task"]} if is_data else {"task": options["task"]}
    changes = assignments(options["changes"])
    for name in changes:
        if name.rpartition(".")[2] in options:
            refuse_given(f"besides --set {name}", name.rpartition(".")[2])
    data = changed({**parts, "m": options["m"], "seeds": [options["seed"]]}, changes)
    model, task = data["model"], data["task"]
    if "d" in model and model.get("style") != "edelman":
        model.setdefault("d_ff", 4 * model["d"])
    if task["task"] == "boolean" and "function" not in task:
        raise InvalidSetting(
            'task boolean needs a function: --set "task.function=x0 & ~x1 | x2", or a truth table such as 00010111 '
            "(conjunction, disjunction, parity and majority are tasks of their own)"
        )
    return sweep_from_json(data).trials[0]


def _bounds(trial: Trial, result: dict[str, Any], gamma: float, delta: float) -> list[BoundValue]:
    from boundcalc import compare
    from boundcalc.lab.train.bounds import setting_of
    from boundcalc.theorems import POLICIES

    if trial.online or "norms" not in result or "margins" not in result["train"]:
        return []
    return compare(setting_of(trial, result, margin=gamma, delta=delta), list(POLICIES))


def _certified(trial: Trial, requests: list[Request], folder: Path | None) -> list[dict[str, Any]]:
    """One entry per method: its certificate in short, what was measured, and the file it was written to."""
    from boundcalc.lab.train.certify import certify_trial, examples_of

    if folder is not None:
        examples_of(trial)[0].save(output.make_folder(folder) / "examples.npz")
    entries: list[dict[str, Any]] = []
    with progress(0) as show:

        def tell(name: str, state: Mapping[str, Any] | str) -> None:
            if not isinstance(state, str):
                state = f"prefix {state['prefix']}, {state['picks']} picks, {state['wrong']} of {state['others']} wrong"
            show(f"{name}: {state}")

        for issued in certify_trial(trial, requests, tell=tell):
            file = None
            if issued.certificate is not None and folder is not None:
                file = folder / f"{issued.request.method}.json"
                issued.certificate.save(file)
                if issued.network is not None:
                    issued.network.save(file.with_suffix(".safetensors"))
            entries.append({**issued.entry, "file": file and str(file)})
    return entries


# -- text


def _newest(state: Mapping[str, Any]) -> str:
    """The newest point of the curves."""
    point = state["points"][0]
    parts = (
        f"{part} loss {near(point[f'{part}_loss'])} error {near(point[f'{part}_error'])}" for part in ("train", "test")
    )
    return "  ".join([f"step {state['step']:>6} of {state['steps']}", *parts])


def _show(trial: Trial, result: dict[str, Any], values: list[BoundValue], gamma: float, delta: float) -> None:
    """Print the errors, what attention looks at, the trial, its bounds and its norms."""
    length = "T" if hasattr(trial.task, "T") else "L"
    rows = getattr(trial.task, length, trial.architecture.seq_len)
    size = "fresh examples" if trial.online else f"m = {trial.m}"
    test, train = result["test"], result["train"]
    low, high = test["interval"]
    say(
        f"test error {near(test['error'])} [{down(low)}, {up(high)}] of {test['n']} examples, after {result['steps']} "
        f"steps ({result['reason']})\n"
        f"training error {near(train['error'])}, loss {near(train['loss'])}; test loss {near(test['loss'])}"
    )
    for block, mass in enumerate(result.get("attention", [])):
        heads = f"best head {percent(mass['best_head'])}, mean {percent(mass['mean'])}"
        say(f"attention on the true coordinates, block {block}: {heads}")
    say(
        f"trial {trial.hash[:12]}: {getattr(trial.task, 'function', trial.task.kind)}, {length} = {rows}, {size}, "
        f"depth {trial.architecture.depth}, d = {trial.architecture.d}, {trial.architecture.heads} heads\n"
    )
    if values:
        _show_bounds(values, gamma, delta)
    else:
        say("no bound: it needs a training sample (m > 0), a classification and finite weights")
    if "norms" in result:
        from boundcalc.base.schema import write
        from boundcalc.lab.train.bounds import by_block

        budgets = {key: write(budget) for key, budget in by_block(result).items()}
        kinds = list(dict.fromkeys(kind for row in budgets.values() for kind, x in row.items() if isinstance(x, float)))
        norms = [[key, *(up(row[kind]) if kind in row else "" for kind in kinds)] for key, row in budgets.items()]
        say()
        write_table([("norm (largest over heads)", *kinds), *norms], right=range(1, 1 + len(kinds)))


def _show_bounds(values: list[BoundValue], gamma: float, delta: float) -> None:
    """Print a row for each bound of the gap."""
    sample = values[0].setting.sample
    say(
        f"bounds of the gap (ramp loss of margin {short(gamma)}, delta {short(delta)}, share of training margins at "
        f"most gamma: {short(sample.train_error)}), corrected for norms chosen after training"
    )
    bounds = [value for value in values if value.refusal is None and value.kind != "proxy"]
    if bounds and all(value.vacuous for value in bounds):
        say(f"none of {len(bounds)} is below 1 at m = {sample.n_train}")
    rows = [("bound", "gap <=", "note")]
    for value in values:
        note = f"needs {value.refusal.needs}" if value.refusal is not None else ""
        if not note and value.trivial:
            note = "every covering argument gives a bound above 1 here"
        rows.append((value.name, cell(value.to_json(), "gap"), note))
    say()
    write_table(rows)


def show_certificates(entries: Sequence[Mapping[str, Any]], delta: float) -> None:
    """A row for each method; a rule leads with what knows least of the task: its table or tree."""
    say(f"\ncertificates, each by itself with probability at least {confidence(delta)} (its own predictor)\n")
    rows = [("method", "risk <=", "test error", "by", "based on")]
    notes: list[str] = []
    for entry in entries:
        method = entry["method"]
        if entry["risk"] is None:
            rows.append((method, NO_MEMBER, "", "", entry["refused"]))
            continue
        risk, facts = entry["risk"], {name: entry[name] for name in ("picks", "nats", "draws", "bits") if name in entry}
        if "rule" in entry:
            margin = f"proved from the weights, least margin {down(entry['margin'], 3)}"
            notes.append(f"{method}: computes {entry['rule']} on {entry['inputs']} ({margin})")
        if entry.get("function") != entry.get("unnamed"):
            name = f"by the name {entry['function']}, which the code of tasks has"
            notes.append(f"{method}: {name}: {fact_shown(entry['bits'])} bits, risk <= {up(risk, 4)}")
            risk, facts["bits"] = entry["risk_unnamed"], entry["bits_unnamed"]
        of = entry["draws"] * entry["tested"] if "draws" in entry else entry["n"] - entry.get("picks", 0)
        words = [*(f"{fact_shown(fact)} {name}" for name, fact in facts.items()), f"{entry['errors']} errors of {of}"]
        measured = "" if entry["test_error"] is None else near(entry["test_error"])
        rows.append((method, up(risk, 4), measured, entry["statement"], f"{', '.join(words)}; {entry['certified']}"))
        notes += [f"{method}: {entry['file']}"] * bool(entry["file"])
    write_table(rows)
    for note in notes:
        say(note)
