"""`boundcalc norms`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import up
from boundcalc.cli.checkpoint import account_lines, model_options, norms_of, take_audit
from boundcalc.cli.files import FileCommand, Input, output_file
from boundcalc.cli.options import form_option, option, refuse_given, refuse_others, write_json
from boundcalc.cli.text import say, write_table

if TYPE_CHECKING:
    from boundcalc.checkpoints import Audit
    from boundcalc.norms.matrix import Measured

_SHOWN = {"op": "op", "F": "fro", "21": "two_one", "21T": "two_one_t", "11": "one_one", "row": "row", "rank <=": "rank"}
_SHOWN |= {"sup": "sup"}


@click.command(
    cls=FileCommand,
    epilog="""\b
Examples:
  boundcalc norms runs/bert
  boundcalc norms runs/bert --setting-out setting.json && boundcalc eval --setting setting.json --m 1e8
  boundcalc norms later/ --out norms.json && boundcalc eval --setting setting.json --norms norms.json
  boundcalc norms after.pt --family gpt2 --heads 12 --set activation_function=gelu_new --reference init.pt
  boundcalc norms mine.pt --template mine.json --compare model.py:make
  boundcalc norms model.pt --mapping mine.json --format csv > norms.csv

MODEL is a .safetensors, .pt, .bin or .ckpt file, an index of shards, or a directory as save_pretrained writes it.
Nothing in it is executed. Every norm is an upper bound of the exact one.""",
)
@click.argument("model", type=Input())
@model_options
@option("--out -o", output_file(), "Write a norms file, for `boundcalc eval --norms`.")
@option("--setting-out", output_file(), "Write architecture and norms, for `eval --setting`.")
@option(
    "--template", output_file(), "Write a mapping that agrees with the module of --compare, for --mapping, and stop."
)
@form_option("table", "json", "csv")
def command(model: str, out: Path | None, setting_out: Path | None, template: Path | None, form: str, **options: Any):
    """Certified norms of a checkpoint, layer by layer, and where each of its tensors went."""
    if template is not None:
        takes = {"model", "template", "compare", "heads"}
        refuse_others("with --template, which writes a mapping and stops", takes)
        _template(model, template, options)
        return
    if out is None and setting_out is None:
        refuse_given("without --out or --setting-out, which write the budgets it adds", "schatten", "readout_norm")
    audit = take_audit(model, options)
    norms = norms_of(audit, options)
    if out is not None:
        output.write_json(out, norms.to_json())
    if setting_out is not None:
        _write_setting(audit, norms, setting_out)
    if form == "json":
        write_json(audit.to_json())
    elif form == "csv":
        from boundcalc.cli.grid import write_csv

        rows = [{**row, "shape": "x".join(map(str, row["shape"]))} for row in audit.table()]
        write_csv(rows[0], rows)
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
    say(f"{out}: {len(mapping['tensors'])} names")
    ignored = {name: f"ignored: {why}" for name, why in mapping.get("ignored", {}).items()}
    for name, role in (mapping["tensors"] | ignored).items():
        say(f"  {name:<44} {role}")
    say(", ".join(f"{name} {value}" for name, value in mapping["architecture"].items()))
    say(f"{parity.text[0].upper()}{parity.text[1:]}.")


def _write_setting(audit: Audit, norms: Any, file: Path) -> None:
    from boundcalc.setting import Setting

    doubts = [*audit.account.doubts]
    doubts += [f"{name}: no place in the family {audit.family!r}" for name in audit.account.unknown]
    if doubts:
        raise InvalidSetting(f"{audit.where} may not be the model of --setting-out: {doubts[0]} (--out alone works)")
    data = Setting(audit.architecture, norms).to_json()
    del data["sample"]
    output.write_json(file, data)


def _table(audit: Audit) -> None:
    """A row for each weight, of all heads of a block together."""
    groups: dict[str, list[str]] = {}
    for key in audit.measured:
        groups.setdefault(key.partition(",")[0] + "]" * ("," in key), []).append(key)
    rows: list[list[str]] = []
    for name, keys in groups.items():
        heads = [audit.measured[key] for key in keys]
        shape = "x".join(map(str, (*([len(heads)] if len(heads) > 1 else []), *heads[0].shape)))
        rows.append([name, shape, *(_top(heads, field) for field in _SHOWN.values())])
        if audit.distances:
            moved = [audit.distances[key] for key in keys if key in audit.distances]
            rows[-1].append(_top(moved, "fro") or _top(moved, "op"))
    headings = ["weight", "shape", *_SHOWN, *(["distance"] if audit.distances else [])]
    say(f"{audit.where}: family {audit.family}, T {audit.architecture.seq_len}\n")
    write_table(headings, rows, right=frozenset(range(2, len(headings))))
    say()
    for text in account_lines(audit):
        say(text)
    say("op: spectral norm (l2 norm of a vector); 21: sum of column norms of x -> xW, 21T of its transpose.")
    say("Of heads (4x9x8: four of 9x8) the largest value is shown; --format csv shows each. All are upper bounds.")


def _top(measures: list[Measured], field: str) -> str:
    """The largest norm of some weights, rounded up, so that what is read off the table is an upper bound too."""
    values = [getattr(measured, field) for measured in measures]
    if None in values or not values:
        return ""
    return str(max(values)) if field == "rank" else up(max(values))
