"""`boundcalc norms`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base import output, rounding
from boundcalc.cli.checkpoint import account_lines, model_options, readout_budget, take_audit
from boundcalc.cli.files import FileCommand, Input, output_file
from boundcalc.cli.idle import refuse_given
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.text import say

if TYPE_CHECKING:
    from boundcalc.checkpoints import Audit
    from boundcalc.norms.matrix import Measured

_SHOWN = (("op", "op"), ("F", "fro"), ("21", "two_one"), ("21T", "two_one_t"), ("11", "one_one"), ("row", "row"))


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
@click.option("--out", "-o", type=output_file(), help="Write a norms file, for `boundcalc eval --norms`.")
@click.option("--setting-out", type=output_file(), help="Write architecture and norms, for `eval --setting`.")
@click.option(
    "--template",
    type=output_file(),
    help="Write a mapping that agrees with the module of --compare, for --mapping, and stop.",
)
@form_option("table", "json", "csv")
def command(
    model: str,
    out: Path | None,
    setting_out: Path | None,
    template: Path | None,
    form: str,
    readout_norm: float | None,
    schatten: float | None,
    **options: Any,
) -> None:
    """Certified norms of a checkpoint, layer by layer, and where each of its tensors went."""
    if template is not None:
        _template(model, template, options)
        return
    if out is None and setting_out is None:
        why = "without --out or --setting-out, which write the budgets it adds"
        refuse_given({"schatten": why, "readout_norm": why})
    audit = take_audit(model, options)
    if out is not None or setting_out is not None:
        _write(audit, out, setting_out, schatten, readout_norm)
    {"table": _table, "json": _json, "csv": _csv}[form](audit)


_READ_BY_TEMPLATE = ("model", "template", "compare", "heads", "force")


def _template(model: str, out: Path, options: dict[str, Any]) -> None:
    """A mapping of a model of no known family that agrees with its module."""
    from boundcalc.base.errors import InvalidSetting
    from boundcalc.checkpoints.describe import describe
    from boundcalc.checkpoints.modules import find_module
    from boundcalc.checkpoints.readers import open_checkpoint
    from boundcalc.lab.reading import with_buffers

    others = [name for name in click.get_current_context().params if name not in _READ_BY_TEMPLATE]
    refuse_given(dict.fromkeys(others, "with --template, which writes a mapping and stops"))
    checkpoint = open_checkpoint(model)
    hand = find_module(model, checkpoint, options["compare"])
    live = hand.load() if hand.load is not None else hand.module
    if live is None:
        raise InvalidSetting("--template describes a module by its forward pass: add --compare module.py:make")
    mapping, parity = describe(live, with_buffers(checkpoint, live), heads=options["heads"])
    output.write_json(out, mapping)
    say(f"{out}: {len(mapping['tensors'])} names")
    for name, role in mapping["tensors"].items():
        say(f"  {name:<44} {role}")
    for name, why in mapping.get("ignored", {}).items():
        say(f"  {name:<44} ignored: {why}")
    say(", ".join(f"{name} {value}" for name, value in mapping["architecture"].items()))
    say(f"{parity.text[0].upper()}{parity.text[1:]}.")


def _write(
    audit: Audit, out: Path | None, setting_out: Path | None, power: float | None, readout: float | None
) -> None:
    from boundcalc.base.errors import InvalidSetting
    from boundcalc.setting import Setting

    norms = audit.norms(power, readout_budget(audit, readout))
    if out is not None:
        output.write_json(out, norms.to_json())
    if setting_out is not None:
        doubts = list(audit.account.doubts)
        doubts += [f"{name}: no place in the family {audit.family!r}" for name in audit.account.unknown]
        if doubts:
            raise InvalidSetting(
                f"{audit.where} may not be the model of --setting-out: {doubts[0]} (--out alone works)"
            )
        data = Setting(audit.architecture, norms).to_json()
        del data["sample"]
        output.write_json(setting_out, data)


def _grouped(audit: Audit) -> dict[str, list[Measured]]:
    """The norms of each weight, of all heads of a block together."""
    rows: dict[str, list[Measured]] = {}
    for key, m in audit.measured.items():
        name = key.partition(",")[0] + "]" if "," in key else key
        rows.setdefault(name, []).append(m)
    return rows


def _top(measures: list[Measured], field: str) -> Any:
    values = [getattr(m, field) for m in measures]
    return None if None in values else max(values)


def _table(audit: Audit) -> None:
    from boundcalc.cli.text import Line, write_table

    headings = ["weight", "shape", *(symbol for symbol, _ in _SHOWN), "rank <=", "sup"]
    if audit.distances:
        headings.append("distance")
    lines: list[Line] = []
    for name, heads in _grouped(audit).items():
        shape = "x".join(map(str, (*([len(heads)] if len(heads) > 1 else []), *heads[0].shape)))
        cells = [name, shape, *(_number(_top(heads, field)) for _, field in _SHOWN)]
        rank = _top(heads, "rank")
        cells += ["" if rank is None else str(rank), _number(_top(heads, "sup"))]
        if audit.distances:
            cells.append(_number(_distance(audit, name)))
        lines.append(Line(cells))
    say(f"{audit.where}: family {audit.family}, T {audit.architecture.seq_len}\n")
    write_table(headings, lines, right=frozenset(range(2, len(headings))))
    say()
    for text in account_lines(audit):
        say(text)
    say("op: spectral norm (l2 norm of a vector); 21: sum of column norms of x -> xW, 21T of its transpose.")
    say("Of heads (4x9x8: four of 9x8) the largest value is shown; --format csv shows each. All are upper bounds.")


def _distance(audit: Audit, name: str) -> float | None:
    values = [
        m.fro if m.fro is not None else m.op
        for key, m in audit.distances.items()
        if key == name or (key.partition(",")[0] + "]" == name and "," in key)
    ]
    sizes = [value for value in values if value is not None]
    return max(sizes) if sizes else None


def _number(value: float | None) -> str:
    """Rounded up, so that what is read off the table is an upper bound too."""
    return "" if value is None else rounding.up(value)


def _json(audit: Audit) -> None:
    write_json(audit.to_json())


def _csv(audit: Audit) -> None:
    from boundcalc.cli.formats import write_csv

    rows = audit.table()
    for row in rows:
        row["shape"] = "x".join(map(str, row["shape"]))
    write_csv(rows[0], rows)
