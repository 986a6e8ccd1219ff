"""What `norms` and `certify` share: the options that say how to read a checkpoint, and its account in words."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import assignments
from boundcalc.base.rounding import up
from boundcalc.cli.files import FILE, NAME_OR_FILE, Input
from boundcalc.cli.options import NUMBER, WHOLE, all_of, option, several
from boundcalc.cli.progress import Live

if TYPE_CHECKING:
    from boundcalc.checkpoints import Audit

READING = ("family", "mapping", "compare", "reference", "seq_len", "heads", "input_radius", "settings", "seed")
"""Options of every model, with data or without."""
model_options = all_of(
    option("--family", str, "Adapter to use: bert, gpt2, llama, ... (found by config.json where there is one)."),
    option("--mapping", FILE, "A JSON file that describes a model of no known family."),
    option(
        "--compare",
        NAME_OR_FILE,
        "Run the module that this function makes, with these weights, against the architecture. The file is executed. "
        "Default: the class of the transformers library, if it is installed and wrote the folder ('transformers': "
        "however large; 'none': never).",
        metavar="FILE.py:NAME",
    ),
    option("--reference", Input(), "Checkpoint fixed before the data (the initialisation)."),
    option("--T seq_len", WHOLE, "Rows (tokens) per sequence; unset, as many as there are positions."),
    option("--heads", WHOLE, "Attention heads per block, where no config says so."),
    option("--input-radius", NUMBER, "Largest l2 norm of an input row (vector inputs)."),
    option("--classes", WHOLE, "1 for a scalar score, else the number of logits, of a read-out not in the file."),
    option("--readout-norm", NUMBER, "Spectral and (2,1) norm of a read-out that the file does not hold."),
    several("--set settings", "A setting of config.json (repeatable).", "NAME=VALUE"),
    option("--exact", bool, "No random probes for wide matrices (slower, no failure probability)."),
    option("--schatten", NUMBER, "Also budget the Schatten sum of this power (0.1, 0.2, ..., 2)."),
    option("--seed", WHOLE, "Random seed of the probes (default: fresh, printed)."),
)
"""The options that say how to read a checkpoint."""


def one_thread() -> None:
    """Small matrices and shared machines: a second BLAS thread mostly waits. A user who wants more says so."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def take_audit(model: str, options: dict[str, Any], *, lacking: str | None = None, refused: bool = False) -> Audit:
    """Measures a checkpoint; `refused`: one that may not be the model that would be bounded.

    `lacking`: what to say of one without a read-out where no option describes it.
    """
    one_thread()
    from boundcalc.checkpoints import Options, Want
    from boundcalc.checkpoints.audit import chosen_family
    from boundcalc.lab.reading import read_model, reject_incomplete

    sizes = {name: options[name] for name in ("seq_len", "heads", "input_radius", "classes")}
    unnamed = lacking if options["readout_norm"] is None else None
    with Live(quiet=True) as live:
        audit = read_model(
            model,
            options["compare"],
            family=chosen_family(options["family"], options["mapping"]),
            options=Options(**sizes, settings=assignments(options["settings"], "--set")),
            want=Want(None, options["exact"]),
            reference=options["reference"],
            seed=options["seed"],
            inspect=reject_incomplete(model, unnamed) if refused else None,
            progress=lambda name, done, total: live.show(f"{name}: {done} of {total}"),
            say=lambda text: live.show(f"{text} ..."),
        ).audit
    assert audit is not None  # noqa: S101 - without data a model that is not described is refused
    return audit


def norms_of(audit: Audit, options: dict[str, Any]) -> Any:
    """The norms of a checkpoint, with a budget for a read-out that is not in it."""
    from boundcalc.base.validate import positive
    from boundcalc.setting import Budget

    extra: dict[str, Budget] = {}
    if options["readout_norm"] is not None:
        if "readout" not in audit.missing:
            raise InvalidSetting(f"{audit.where} has a read-out of its own: leave out --readout-norm")
        size = positive("read-out norm", options["readout_norm"])
        extra = {"readout": Budget(op=size, two_one=size)}
    return audit.norms(options["schatten"], extra)


def examples_of(source: str, *, handed_over: bool = False) -> Any:
    """Arrays as they were written, or whatever holds sequences; `handed_over`: of a model that was handed over."""
    from boundcalc.predictors.data import Data

    if source.endswith(".npz") and not handed_over:
        return Data.load(source)
    from boundcalc.checkpoints.data import sequences
    from boundcalc.lab.outputs import Examples

    examples = Examples.of(sequences(source))
    return examples if handed_over else Data(*examples.arrays)


def account_lines(audit: Audit) -> list[str]:
    """How the tensors add up, in words."""
    account, text = audit.account, audit.comparison
    rest = account.total - account.used
    used = f"{account.used:,} make up the bounded model" + (f", {rest:,} do not:" if rest else "")
    lines = [f"{text[0].upper()}{text[1:]}.", f"{account.total:,} parameters in {len(account.lines)} tensors; {used}"]
    reasons: dict[str, list[int]] = {}
    for line in account.lines:
        if line.unused and line.role != "unknown":
            reasons.setdefault(line.reason, []).append(line.unused)
    lines += [f"  {sum(counts):,} in {len(counts)} tensors: {why}" for why, counts in reasons.items()]
    lines += [
        f"  {line.tensor} {list(line.shape)}: unexpected; {line.reason}"
        for line in account.lines
        if line.role == "unknown"
    ]
    if account.assumed and audit.family != "mapping":
        defaults = ", ".join(f"{name} {value!r}" for name, value in account.assumed.items())
        lines.append(f"Defaults, as no file gives them: {defaults}.")
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
