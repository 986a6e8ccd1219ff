"""`boundcalc norms`, and what it shares with `certify`: the options that say how to read a checkpoint, its account."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import up
from boundcalc.cli._options import (
    FILE,
    FILE_OR_FOLDER,
    NEW_FILE,
    all_of,
    assignments,
    command_with,
    form_option,
    option,
    refuse_others,
    several,
    write_json,
)
from boundcalc.cli._text import progress, say, write_table

if TYPE_CHECKING:
    from boundcalc.checkpoints import Audit

READING = ("family", "mapping", "compare", "reference", "seq_len", "heads", "input_radius", "settings", "seed")
"""Options of every model, with data or without."""
model_options = all_of(
    option("--family", str, "Adapter to use: bert, gpt2, llama, ... (found by config.json where there is one)."),
    option("--mapping", FILE, "A JSON file that describes a model of no known family."),
    option(
        "--compare",
        FILE_OR_FOLDER,
        "Run the module that this function makes, with these weights, against the architecture. The file is executed. "
        "Default: the class of the transformers library, if it is installed and wrote the folder ('transformers': "
        "however large; 'none': never).",
        metavar="FILE.py:NAME",
    ),
    option("--reference", FILE_OR_FOLDER, "Checkpoint fixed before the data (the initialisation)."),
    option("--T seq_len", int, "Rows (tokens) per sequence; unset, as many as there are positions."),
    option("--heads", int, "Attention heads per block, where no config says so."),
    option("--input-radius", float, "Largest l2 norm of an input row (vector inputs)."),
    several("--set settings", "A setting of config.json (repeatable).", "NAME=VALUE"),
    option("--seed", int, "Random seed of the probes (default: fresh, printed)."),
)
"""The options that say how to read a checkpoint."""


@command_with("""\
  boundcalc norms runs/bert
  boundcalc norms runs/bert --setting-out setting.json && boundcalc eval --setting setting.json --m 1e8
  boundcalc norms after.pt --family gpt2 --heads 12 --set activation_function=gelu_new --reference init.pt
  boundcalc norms mine.pt --template mine.json --compare model.py:make

MODEL is a .safetensors, .pt, .bin or .ckpt file, an index of shards, or a directory as save_pretrained writes it.
Nothing in it is executed. Every norm is an upper bound of the exact one.""")
@click.argument("model", type=FILE_OR_FOLDER)
@model_options
@option("--out -o", NEW_FILE, "Write a norms file, for `boundcalc eval --norms`.")
@option("--setting-out", NEW_FILE, "Write architecture and norms, for `eval --setting`.")
@option("--template", NEW_FILE, "Write a mapping that agrees with the module of --compare, for --mapping, and stop.")
@form_option("table", "json")
def command(model: str, out: Path | None, setting_out: Path | None, template: Path | None, form: str, **options: Any):
    """Certified norms of a checkpoint, layer by layer, and where each of its tensors went."""
    if template is not None:
        takes = {"model", "template", "compare", "heads"}
        refuse_others("with --template, which writes a mapping and stops", takes)
        _template(model, template, options)
        return
    audit = take_audit(model, options, refused=setting_out is not None)
    norms = audit.norms().to_json()
    if out is not None:
        output.write_json(out, norms)
    if setting_out is not None:
        output.write_json(setting_out, {"architecture": audit.architecture.to_json(), "norms": norms})
    if form == "json":
        write_json(audit.to_json())
    else:
        _table(audit)


def _template(model: str, out: Path, options: dict[str, Any]) -> None:
    """A mapping of a model of no known family that agrees with its module."""
    from boundcalc.checkpoints.describe import describe
    from boundcalc.checkpoints.modules import find_module
    from boundcalc.checkpoints.readers import open_checkpoint
    from boundcalc.lab.reading import with_buffers

    checkpoint = open_checkpoint(model)
    hand = find_module(model, checkpoint, options["compare"])
    live = hand.load() if hand.load is not None else hand.module
    if live is None:
        raise InvalidSetting("--template describes a module by its forward pass: add --compare module.py:make")
    mapping, parity = describe(live, with_buffers(checkpoint, live), heads=options["heads"])
    output.write_json(out, mapping)
    ignored = {name: f"ignored: {why}" for name, why in mapping.get("ignored", {}).items()}
    write_table([("parameter", "role"), *(mapping["tensors"] | ignored).items()])
    say(", ".join(f"{name} {value}" for name, value in mapping["architecture"].items()))
    text = parity.compared.text
    say(f"{out}: {len(mapping['tensors'])} names. {text[0].upper()}{text[1:]}.")


def _table(audit: Audit) -> None:
    """A row for each weight, of all heads of a block together, with the norms that some weight has."""
    from boundcalc.checkpoints.audit import COLUMNS

    groups: dict[str, list[dict[str, Any]]] = {}
    for row in audit.table():
        block, comma, _ = row["weight"].partition(",")
        groups.setdefault(block + "]" * bool(comma), []).append(row)
    norms = [name for name in (*COLUMNS, "distance") if any(row[name] is not None for row in audit.table())]
    rows: list[list[str]] = [["weight", "shape", *norms]]
    for name, heads in groups.items():
        shape = "x".join(map(str, (*([len(heads)] if len(heads) > 1 else []), *heads[0]["shape"])))
        rows.append([name, shape, *(_largest([row[norm] for row in heads]) for norm in norms)])
    say(f"{audit.where}: family {audit.family}, T {audit.architecture.seq_len}\n")
    write_table(rows, right=range(2, len(rows[0])))
    say("\n".join(["", *account_lines(audit)]))
    say("op: spectral norm (l2 norm of a vector); 21: sum of column norms of x -> xW, 21T of its transpose.")
    say("Of heads (4x9x8: four of 9x8) the largest value is shown; --format json has each. All are upper bounds.")


def _largest(values: list[float | None]) -> str:
    """The largest norm of some weights, rounded up, so that what is read off the table is an upper bound too."""
    sizes = [value for value in values if value is not None]
    return "" if not sizes else str(max(sizes)) if isinstance(sizes[0], int) else up(max(sizes))


# -- what certify does too


def one_thread() -> None:
    """Small matrices and shared machines: a second BLAS thread mostly waits. A user who wants more says so."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def take_audit(model: str, options: dict[str, Any], *, refused: bool = False) -> Audit:
    """Measures a checkpoint; `refused`: one that may not be the model that would be bounded."""
    one_thread()
    from boundcalc.checkpoints import Options
    from boundcalc.checkpoints.audit import chosen_family
    from boundcalc.lab.reading import read_model

    sizes = {name: options[name] for name in ("seq_len", "heads", "input_radius")}
    with progress() as show:
        audit = read_model(
            model,
            options["compare"],
            family=chosen_family(options["family"], options["mapping"]),
            options=Options(**sizes, settings=assignments(options["settings"])),
            reference=options["reference"],
            seed=options["seed"],
            whole=refused,
            progress=lambda name, done, total: show(f"{name}: {done} of {total}"),
            say=lambda text: show(f"{text} ..."),
        ).audit
    assert audit is not None  # noqa: S101 - without data a model that is not described is refused
    return audit


def account_lines(audit: Audit) -> list[str]:
    """How the tensors add up, in words."""
    account, text = audit.account, audit.comparison
    rest = account.total - account.used
    used = f"{account.used:,} make up the bounded model" + (f", {rest:,} do not:" if rest else "")
    lines = [f"{text[0].upper()}{text[1:]}.", f"{account.total:,} parameters in {len(account.lines)} tensors; {used}"]
    reasons: dict[str, list[int]] = {}
    for line in account.lines:
        if line.role == "unknown":
            lines.append(f"  {line.tensor} {list(line.shape)}: unexpected; {line.reason}")
        elif line.unused:
            reasons.setdefault(line.reason, []).append(line.unused)
    lines += [f"  {sum(counts):,} in {len(counts)} tensors: {why}" for why, counts in reasons.items()]
    if account.assumed and audit.family != "mapping":
        defaults = ", ".join(f"{name} {value!r}" for name, value in account.assumed.items())
        lines.append(f"Defaults, as no file gives them: {defaults}.")
    lines += [f"Doubted, so that there is no bound: {doubt}" for doubt in account.doubts]
    if audit.missing:
        lines.append(f"Not in the checkpoint: {', '.join(audit.missing)} (it ends in rows, which have no margin)")
    elif account.shared:
        lines.append(
            f"{account.shared:,} of the bounded model's parameters are tied: the same numbers once more (a read-out "
            "that is the embedding, blocks that share a tensor); the bound covers them again, as if they were free."
        )
    if audit.failure:
        lines.append(
            f"Wide matrices were probed at random (seed {audit.seed}): with chance at most {up(audit.failure, 2)} a "
            "norm is too small; it counts in delta."
        )
    return lines
