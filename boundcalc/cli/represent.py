"""`boundcalc represent`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import at_least, down, up
from boundcalc.cli.files import STORE, FileCommand, output_file
from boundcalc.cli.idle import refuse_given
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.values import WHOLE

if TYPE_CHECKING:
    from boundcalc.engine.solve import Solution
    from boundcalc.lab.represent.certify import Certified
    from boundcalc.lab.represent.exhaust import Worst
    from boundcalc.lab.represent.network import Network
    from boundcalc.lab.represent.represent import Representation, Tower
    from boundcalc.lab.represent.trained import Norms

_ALL_OF = 12
"""Bits of which a network of several blocks is tried on all inputs."""
_CONSTRUCTIONS = ("threshold", "mean", "signed mean", "corners")


@click.command(
    cls=FileCommand,
    name="represent",
    short_help="A sparse Boolean function as explicit, certified weights.",
    epilog="""\b
Examples:
  boundcalc represent "x3 & ~x7 | x11" --T 512
  boundcalc represent "MAJ(1, 5, 9)" --T 4096 --compact --attack 1e5
  boundcalc represent "PARITY(0..7)" --T 64 -o parity.safetensors
  boundcalc represent "AND(0, 1, 2)" --T 512 --store runs.db
  boundcalc represent --table 01101001 --reads 2,4,8 --T 16 --format json
  boundcalc represent --level "x0 & x1; x2 | x3" --level "x0 ^ x1" --T 12
\b
Bits are x0 to x(T-1). Operators: ~ (not), & (and), ^ (xor), | (or). AND, OR, MAJ and PARITY take
bits by number, ranges a..b and formulas.""",
)
@click.argument("expression", required=False)
@click.option("--T", "seq_len", type=WHOLE, required=True, help="Rows (bits) per sequence.")
@click.option(
    "--table", help="A truth table instead: 2^s digits, the all-zero row first, the first bit changing fastest."
)
@click.option("--reads", help="The bits a table reads, as 3,7,11 (default 0, 1, ...).")
@click.option(
    "--level",
    "levels",
    multiple=True,
    help="Functions of functions instead, a block per level: between semicolons, of the bits, then of the level before.",
)
@click.option("--compact", is_flag=True, help="Nearly orthonormal positions in few dimensions, instead of T.")
@click.option("--construction", type=click.Choice(_CONSTRUCTIONS), help="This one (default: the fewest samples).")
@click.option("--attack", type=WHOLE, default=0, metavar="N", help="Also try N random and adversarial inputs.")
@click.option(
    "--store",
    type=STORE,
    help="Also the norms of trained models: a store of `boundcalc sweep`, whose trials of this function and T are read.",
)
@click.option("-o", "--out", type=output_file(), help="Write the weights, *.safetensors or *.npz.")
@form_option("table", "json")
def command(
    expression: str | None,
    seq_len: int,
    table: str | None,
    reads: str | None,
    levels: tuple[str, ...],
    compact: bool,
    construction: str | None,
    attack: int,
    store: Path | None,
    out: Path | None,
    form: str,
) -> None:
    """Weights of one Transformer block that compute a sparse Boolean function on all 2^T inputs, with their norms.

    The function is reduced to the bits it depends on. Of the constructions it allows, the one whose class of networks
    needs the fewest samples is taken. The sign is certified in interval arithmetic.
    """
    if attack < 0:
        raise InvalidSetting(f"--attack must be at least 0, got {attack}")
    if levels:
        tower, network, tried = _tower(levels, seq_len, expression, attack)
        about = _about(tower.to_json(), tried)
        _write(about, network, form, out, lambda: _show_tower(tower, tried))
        return
    from boundcalc.lab.represent.exhaust import MOST_BITS, exhaust
    from boundcalc.lab.represent.exhaust import attack as attack_it
    from boundcalc.lab.represent.represent import represent

    function = _function(expression, table, reads)
    found = represent(function, seq_len, positions="compact" if compact else "orthonormal", kind=construction)
    network, smallest = found.construction.network, found.construction.function
    tried = {}
    if seq_len <= min(16, MOST_BITS):
        tried["all"] = exhaust(network, smallest)
    if attack:
        tried["random and adversarial"] = attack_it(network, smallest, attack, seed=0)
    about = _about(found.to_json(), tried)
    beside = _trained(store, found) if store is not None else []
    if store is not None:
        about["trained"] = [norms.to_json() for norms in beside]

    def shown() -> None:
        _show(found, tried)
        if store is not None:
            _show_trained(store, beside)

    _write(about, network, form, out, shown)


def _about(found: dict[str, Any], tried: Mapping[str, Worst]) -> dict[str, Any]:
    return found | {"tried": {name: {"inputs": w.tried, "least": w.score} for name, w in tried.items()}}


def _write(about: dict[str, Any], network: Network, form: str, out: Path | None, shown: Callable[[], None]) -> None:
    """The weights to a file, if that was asked, and what they are to the terminal."""
    if out is not None:
        from boundcalc.lab.represent.export import save

        save(out, network, about)
    if form == "json":
        write_json(about)
        return
    shown()
    if out is not None:
        click.echo(f"weights written to {out}")


def _tower(
    levels: tuple[str, ...], seq_len: int, expression: str | None, attack: int
) -> tuple[Tower, Network, dict[str, Worst]]:
    """A function of functions, and the worst of the inputs that were tried: all of few bits, random ones of more."""
    import numpy as np

    from boundcalc.lab.represent.exhaust import all_inputs, worst_of
    from boundcalc.lab.represent.expressions import parse
    from boundcalc.lab.represent.represent import tower

    if expression is not None:
        raise InvalidSetting("--level gives the functions: leave out the expression")
    alone = "with --level: one block's function alone has"
    refuse_given(
        {
            "table": f"{alone} a table",
            "reads": f"{alone} a table",
            "compact": f"{alone} compact positions",
            "construction": f"{alone} several",
            "store": f"{alone} trained models beside it",
        }
    )
    found = tower([[parse(text) for text in level.split(";")] for level in levels], seq_len)
    deep, tried = found.deep, dict[str, "Worst"]()
    if seq_len <= _ALL_OF:
        tried["all"] = worst_of(deep.network, deep.values, all_inputs(seq_len, 0, 1 << seq_len))
    if attack:
        bits = np.random.default_rng(0).integers(0, 2, (attack, seq_len))
        tried["random"] = worst_of(deep.network, deep.values, bits)
    return found, deep.network, tried


def _function(expression: str | None, table: str | None, reads: str | None) -> Any:
    from boundcalc.lab.represent.expressions import parse
    from boundcalc.lab.represent.functions import from_table

    if (expression is None) == (table is None):
        raise InvalidSetting('give an expression such as "x3 & ~x7 | x11", or --table with 2^s digits')
    if expression is not None:
        if reads is not None:
            raise InvalidSetting("--reads belongs to --table: an expression names its bits itself")
        return parse(expression)
    assert table is not None  # noqa: S101 - one of the two is given
    if reads is None:
        return from_table(table)
    names = [word.strip().lstrip("xX") for word in reads.split(",")]
    if not all(name.isdigit() for name in names):
        raise InvalidSetting(f"--reads is a list like 3,7,11, got {reads!r}")
    return from_table(table, [int(name) for name in names])


def _trained(store: Path, found: Representation) -> list[Norms]:
    """The norms of the construction, and of the trials in a store that learned the same function of as many bits."""
    from boundcalc.base.errors import NoSolution
    from boundcalc.lab.represent.represent import MARGIN, RISK
    from boundcalc.lab.represent.trained import alike, constructed, trained
    from boundcalc.lab.train.export import read_records
    from boundcalc.lab.train.tasks import task_from_json

    built, kinds = found.construction, {}
    chosen: list[Any] = []
    for record in read_records(store):
        config = record["config"]["task"]
        if config.get("task") == "boolean" and config.get("T") == built.network.seq_len:
            key = str(config.get("function")), config.get("s")
            if key not in kinds:
                kinds[key] = alike(task_from_json(config).table, built.function)  # type: ignore[attr-defined]
            if kinds[key]:
                chosen.append(record)
    groups = trained(chosen, RISK)
    if not groups:
        what = f"none of the {len(chosen)} trials" if chosen else "no trial"
        raise NoSolution(
            f"{store} has {what} of this function at T = {built.network.seq_len} that fits its examples and errs on at "
            f"most {RISK:g} of fresh ones; `boundcalc sweep` trains more"
        )
    return [constructed(built.network, MARGIN), *groups]


def _show_trained(store: Path, beside: list[Norms]) -> None:
    from boundcalc.cli.text import Line, wrapped, write_table
    from boundcalc.lab.represent.represent import RISK
    from boundcalc.lab.represent.trained import COLUMNS

    click.echo(
        f"\nTrained on this function at this T and learned (training error 0, test error <= {RISK:g}), from {store}:\n"
    )
    lines = [
        Line((key, *(_spread(norms, key) for norms in beside)))
        for key in COLUMNS
        if any(key in norms.median for norms in beside)
    ]
    names = [norms.name if norms.trials is None else f"{norms.name}: {norms.trials} trials" for norms in beside]
    write_table(("norm", *names), lines)
    note = (
        "Medians [10%, 90%] over trials of spectral norms (the largest over heads), of the longest row, and of the least "
        "margin on the training sample. scores = rows^2 |W_QK|; stretch = rows times the other norms over the margin."
    )
    click.echo("\n".join(wrapped(note.split(), width=110)))


def _spread(norms: Norms, key: str) -> str:
    if key not in norms.median:
        return "-"
    middle = f"{norms.median[key]:.4g}"
    return middle if norms.trials is None else f"{middle} [{norms.low[key]:.3g}, {norms.high[key]:.3g}]"


def _guaranteed(x: float) -> str:
    """Nine digits, rounded down, without trailing zeros."""
    text = down(x, 9)
    return text if "e" in text else text.rstrip("0").removesuffix(".")


def _show(found: Representation, tried: Mapping[str, Worst]) -> None:
    built, certified = found.construction, found.certified
    network, encoding = built.network, built.network.encoding
    positions = encoding.positions
    where = "orthonormal" if positions.exact else f"compact, coherence {positions.coherence:g}"
    click.echo(f"Function      {built.function.describe()}")
    click.echo(f"Structure     {built.function.structure}; s {built.function.arity}, T {network.seq_len}")
    click.echo(
        f"Construction  {built.kind}; positions {where}; bits {'in one coordinate' if encoding.shared else 'apart'}"
    )
    click.echo(
        f"Sizes         d {encoding.width}, hidden units {network.blocks[0].w_1.shape[0]}, one head, one block; "
        f"rows place {encoding.place:.4f}, bit {encoding.bit:.4f}, constant {encoding.constant:.4f}"
    )
    click.echo(f"Attention     beta {built.beta:.4f}; at most {up(certified.leak)} of it elsewhere (eta)\n")
    _show_network(network, certified, found.needed, tried)
    for name, m in sorted(found.others.items(), key=lambda entry: entry[1]):
        click.echo(f"  construction {name!r} would need {at_least(m)}")


def _show_tower(found: Tower, tried: Mapping[str, Worst]) -> None:
    network = found.deep.network
    if any(found.left_out):
        counts = ", ".join(f"{count} of level {index + 1}" for index, count in enumerate(found.left_out) if count)
        click.echo(f"Left out, as no later level reads them: {counts}; the others are numbered anew.")
    for index, (level, block) in enumerate(zip(found.deep.levels, network.blocks, strict=True)):
        click.echo(f"Block {index}  {block.heads} head{'s' * (block.heads != 1)}, hidden units {block.w_1.shape[0]}")
        for function in level:
            click.echo(f"         {function.describe()}")
    click.echo(f"Sizes    T {network.seq_len}, d {network.encoding.width}\n")
    _show_network(network, found.certified, found.needed, tried)


def _show_network(network: Network, certified: Certified, needed: Solution, tried: Mapping[str, Worst]) -> None:
    """Norms, what was shown of all inputs, what was tried, and what learning takes in the class."""
    from boundcalc.cli.text import Line, write_table

    lines = [
        Line((key, *(up(x or 0.0) for x in (b.op, b.fro, b.two_one, b.one_one)), str(b.rank)))
        for key, b in network.norms.budgets.items()
    ]
    write_table(("matrix", "op", "F", "21", "11", "rank"), lines, right=frozenset(range(1, 6)))
    click.echo(
        f"\nCertified: sign(f) F >= {_guaranteed(certified.margin)} on all 2^{network.seq_len} inputs "
        f"({certified.cases} {certified.method}, interval arithmetic; least with {certified.worst})"
    )
    for name, worst in tried.items():
        click.echo(f"Tried {worst.tried} inputs ({name}): least sign(f) F = {_guaranteed(worst.score)}")
    click.echo(
        f"Smallest m with risk <= 0.05 at delta 0.01 and training error 0 in the class with these norms: "
        f"{at_least(needed.value)}, by 'best' ({needed.bound.risk_strategy})"
    )
