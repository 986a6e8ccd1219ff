"""What `norms` and `certify` share: the options that say how to read a checkpoint, progress, and the audit."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.rounding import short, up
from boundcalc.cli.files import FILE, Input, PythonName
from boundcalc.cli.options import all_of
from boundcalc.cli.progress import measuring
from boundcalc.cli.values import NUMBER, WHOLE

if TYPE_CHECKING:
    from boundcalc.checkpoints import Audit
    from boundcalc.checkpoints.data import Sequences
    from boundcalc.lab.outputs import Outputs

_OPTIONS = (
    click.option(
        "--family",
        help="Adapter to use: bert, gpt2, llama, ... (found by config.json where there is one).",
    ),
    click.option("--mapping", type=FILE, help="A JSON file that describes a model of no known family."),
    click.option(
        "--compare",
        type=PythonName(),
        metavar="FILE.py:NAME",
        help="Run the module that this function makes, with these weights, against the architecture. The file is "
        "executed. Default: the class of the transformers library, if it is installed and wrote the folder "
        "('transformers': however large; 'none': never).",
    ),
    click.option("--reference", type=Input(), help="Checkpoint fixed before the data (the initialisation)."),
    click.option(
        "--T", "seq_len", type=WHOLE, help="Rows (tokens) per sequence; unset, as many as there are positions."
    ),
    click.option("--heads", type=WHOLE, help="Attention heads per block, where no config says so."),
    click.option("--input-radius", type=NUMBER, help="Largest l2 norm of an input row (vector inputs)."),
    click.option(
        "--classes",
        type=WHOLE,
        help="1 for a scalar score, else the number of logits, of a read-out that the file does not hold.",
    ),
    click.option("--readout-norm", type=NUMBER, help="Spectral and (2,1) norm of a read-out it does not hold."),
    click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of config.json (repeatable)."
    ),
    click.option("--spectra/--no-spectra", default=None, help="Singular values of every matrix [default: up to 1024]."),
    click.option("--exact", is_flag=True, help="No random probes for wide matrices (slower, no failure probability)."),
    click.option("--schatten", type=NUMBER, help="Also budget the Schatten sum of this power (0.1, 0.2, ..., 2)."),
    click.option("--seed", type=WHOLE, help="Random seed of the probes (default: fresh, printed)."),
)


model_options = all_of(_OPTIONS)
"""The options that say how to read a checkpoint."""


def teller() -> Callable[[str], None]:
    """Tells on a terminal what is being done."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: click.echo(f"{text} ...", err=True)


def take_audit(model: str, options: dict[str, Any], inspect: Callable[..., None] | None = None) -> Audit:
    """Removes the model's options from a command's and measures the checkpoint, if `inspect` has nothing against it."""
    audit = take(model, options, inspect).audit
    assert audit is not None  # noqa: S101 - without data a model that is not described is refused
    return audit


def take(
    model: str,
    options: dict[str, Any],
    inspect: Callable[..., None] | None = None,
    data: Sequences | None = None,
    bits: int | None = None,
) -> Outputs:
    """The model as it was read.

    With `data`, inputs to compare on, a module that is not described answers all the same.
    """
    # Small matrices and shared machines: a second BLAS thread mostly waits. A user who wants more says so.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from boundcalc.base.files import assignments
    from boundcalc.checkpoints import Options, Want
    from boundcalc.checkpoints.audit import chosen_family
    from boundcalc.lab.reading import TRIED, read_model

    names = ("family", "mapping", "reference", "seq_len", "heads", "input_radius", "classes", "settings", "spectra")
    taken = {name: options.pop(name) for name in (*names, "exact", "seed", "compare")}
    chosen = chosen_family(taken["family"], taken["mapping"])
    sizes = {name: taken[name] for name in ("seq_len", "heads", "input_radius", "classes")}
    with measuring() as progress:
        return read_model(
            model,
            taken["compare"],
            family=chosen,
            options=Options(**sizes, settings=assignments(taken["settings"], "--set")),
            want=Want(taken["spectra"], taken["exact"]),
            reference=taken["reference"],
            seed=taken["seed"],
            inputs=None if data is None else data.first(TRIED),
            inspect=inspect,
            described_only=data is None or chosen is not None,
            bits=bits,
            progress=progress,
            say=teller(),
        )


def readout_budget(audit: Audit, norm: float | None) -> dict[str, Any]:
    """A budget for a read-out that is not in the checkpoint."""
    from boundcalc.base.errors import InvalidSetting
    from boundcalc.base.validate import positive
    from boundcalc.setting import Budget

    if norm is None:
        return {}
    if "readout" not in audit.missing:
        raise InvalidSetting(f"{audit.where} has a read-out of its own: leave out --readout-norm")
    value = positive("read-out norm", norm)
    return {"readout": Budget(op=value, two_one=value)}


def compared(audit: Audit) -> str:
    """Whether the architecture was compared with a forward pass."""
    text = audit.comparison
    return f"{text[0].upper()}{text[1:]}."


def account_lines(audit: Audit) -> list[str]:
    """How the tensors add up, in words."""
    account = audit.account
    lines = [compared(audit)]
    lines += [
        f"{account.total:,} parameters in {len(account.lines)} tensors; {account.used:,} make up the bounded model"
        + ("" if account.used == account.total else f", {account.total - account.used:,} do not:")
    ]
    reasons: dict[str, list[int]] = {}
    for line in account.lines:
        if line.unused and line.role != "unknown":
            reasons.setdefault(line.reason, []).append(line.unused)
    lines += [f"  {sum(counts):,} in {len(counts)} tensors: {why}" for why, counts in reasons.items()]
    turned = sum(line.transposed for line in account.lines)
    if turned:
        lines.append(
            f"{turned} tensors are read as x -> x W of the transpose that is stored, as torch.nn.Linear stores it."
        )
    scaled = dict.fromkeys(
        f"{line.role.partition('[')[0]} times {short(line.factor)}" for line in account.lines if line.factor != 1
    )
    if scaled:
        lines.append(f"Multiplied as the model does: {', '.join(scaled)}.")
    for line in account.lines:
        if line.role == "unknown":
            lines.append(f"  {line.tensor} {list(line.shape)}: unexpected; {line.reason}")
    if account.assumed and audit.family != "mapping":
        said = ", ".join(f"{name} {value!r}" for name, value in account.assumed.items())
        lines.append(f"Defaults, as no file gives them: {said}.")
    lines += [f"Doubted, so that there is no bound: {doubt}" for doubt in account.doubts]
    if audit.missing:
        lines.append(f"Not in the checkpoint: {', '.join(audit.missing)} (a bound needs --readout-norm)")
    elif account.shared:
        lines.append(
            f"{account.shared:,} of the bounded model's parameters are tied: the same numbers once more (a read-out "
            "that is the embedding, blocks that share a tensor); the bound covers them again, as if they were free."
        )
    if audit.failure:
        lines.append(
            f"Wide matrices were probed at random (seed {audit.seed}): with chance at most {up(audit.failure, 2)} a "
            "norm is too small; it counts in delta. --exact avoids it."
        )
    return lines
