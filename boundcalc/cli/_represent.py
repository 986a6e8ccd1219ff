"""`boundcalc represent`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from boundcalc.base import output
from boundcalc.base.rounding import at_least, down, near, up
from boundcalc.cli._options import NEW_FILE, command_with, form_option, option, write_json
from boundcalc.cli._text import say, say_checked, write_table

if TYPE_CHECKING:
    from boundcalc.lab.represent.construct import Representation


@command_with("""\
  boundcalc represent "x3 & ~x7 | x11" --T 512
  boundcalc represent "PARITY(0..7)" --T 64 -o parity.safetensors
  boundcalc represent 01101001 --T 16 --format json

Bits are x0 to x(T-1). Operators: ~ (not), & (and), ^ (xor), | (or). AND, OR, MAJ and PARITY take bits by
number, ranges a..b and formulas. Digits 0 and 1 are a truth table: the all-zero row first, x0 changing fastest.""")
@click.argument("expression")
@option("--T seq_len", int, "Rows (bits) per sequence.", required=True)
@option("-o --out", NEW_FILE, "Write the weights, *.safetensors.")
@form_option("table", "json")
def command(expression: str, seq_len: int, out: Path | None, form: str) -> None:
    """Weights of one Transformer block that compute a sparse Boolean function on all 2^T inputs, with their norms.

    The function is reduced to the bits it depends on. Of the constructions it allows, the one whose class of networks
    needs the fewest samples is taken. The sign is certified in interval arithmetic.
    """
    from boundcalc.lab.represent.construct import represent
    from boundcalc.lab.represent.functions import from_table, parse

    if out is not None:
        output.safetensors_name(out)
    function = parse(expression) if set(expression) - {"0", "1"} else from_table(expression)
    representation = represent(function, seq_len)
    built = representation.construction
    about = representation.to_json()
    if out is not None:
        built.network.save(out, about)
    if form == "json":
        write_json(about)
        return
    _show(representation)
    if out is not None:
        say(f"weights written to {out}")


def _show(representation: Representation) -> None:
    built, certified = representation.construction, representation.certified
    network, encoding = built.network, built.network.encoding
    say_checked(
        f"Certified: sign(f) F >= {down(certified.margin)} on all 2^{network.seq_len} inputs "
        f"({certified.cases} {certified.method}, interval arithmetic; least with {certified.worst})",
    )
    say(
        f"Smallest m with risk <= 0.05 at delta 0.01 and training error 0 in the class with these norms: "
        f"{at_least(representation.needed.value)}, by 'best' ({representation.needed.bound.of('risk').form})\n\n"
        f"Function      {built.function.describe()}\n"
        f"Construction  {built.kind}; bits {'in one coordinate' if encoding.shared else 'apart'}\n"
        f"Sizes         s {built.function.arity}, T {network.seq_len}, d {encoding.width}; one block, one head, "
        f"hidden units {len(network.w_1)}; "
        f"rows place {near(encoding.place)}, bit {near(encoding.bit)}, constant {near(encoding.constant)}\n"
        f"Attention     beta {near(built.beta)}; at most {up(certified.leak)} of it elsewhere (eta)\n"
    )
    rows = [("matrix", "op", "F", "21", "11", "rank")]
    rows += [
        (key, *(up(x or 0.0) for x in (b.op, b.fro, b.two_one, b.one_one)), str(b.rank))
        for key, b in network.norms.budgets.items()
    ]
    write_table(rows, right=range(1, 6))
    for name, m in sorted(representation.others.items(), key=lambda entry: entry[1]):
        say(f"construction {name!r} would need {at_least(m)}")
