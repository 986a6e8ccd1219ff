"""What `boundcalc certify` says beside the table of bounds: what was paid, what dominates, what would have to change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from boundcalc.cli.checkpoint import account_lines
from boundcalc.cli.options import write_json
from boundcalc.statements.premise import no_member

if TYPE_CHECKING:
    from boundcalc.checkpoints import Audit
    from boundcalc.cli.report import Report
    from boundcalc.lab.certification import Certification
    from boundcalc.setting import Setting

_LAYERS = 12
"""Layers in the table of what dominates; the others are summed up in one line."""


def table(
    found: Audit, report: Report, setting: Setting, *, solve: bool, certified: Certification | None = None
) -> None:
    """For people; what was certified with data stands above it."""
    del certified
    from boundcalc.base.rounding import at_least, down, up
    from boundcalc.cli.formats import show

    click.echo(f"{found.where}: family {found.family}")
    for text in account_lines(found):
        click.echo(text)
    click.echo()
    show(report, "table")
    paid, cost = _paid(setting)
    click.echo(
        f"P1: {len(paid.norms.budgets)} kinds of weights rounded up to the grid, gamma {paid.sample.margin:g}; "
        f"log(1/delta) grows from {up(-math.log(paid.sample.delta), 3)} to {up(cost - math.log(paid.sample.delta), 3)}."
    )
    shares = _pieces(report)
    if shares:
        click.echo(f"\nWhat the best {_made_of(report)} bound is made of (part of its log counts):\n")
        _layers(shares)
    click.echo("\nProxies (sizes of published bounds without their constants: no bounds):")
    for line in _proxies(found):
        click.echo(line)
    if not solve or report.best is None:
        return
    refusal = no_member(paid)
    if refusal is not None:
        click.echo(f"\nNo advice: {refusal}")
        return
    from boundcalc.engine.needs import needs

    click.echo("\nFor a bound below 1, everything else unchanged:")
    needed = needs(setting)
    for quantity in ("gap", "risk"):
        m, factor = needed[f"m_{quantity}"], needed[f"norm_factor_{quantity}"]
        samples = "no m up to 10^18 is enough" if m is None else f"m of {at_least(m)}"
        norms = "no factor at which a network still has the margin is enough"
        if factor is not None:
            norms = f"every norm times {down(factor, 3)}"
        click.echo(f"  {quantity}: {samples}; or {norms}" if factor != 1.0 else f"  {quantity}: it is below 1")


def as_json(
    found: Audit, report: Report, setting: Setting, *, solve: bool, certified: Certification | None = None
) -> None:
    """For programs."""
    from boundcalc.checkpoints.proxies import Proxy, proxies

    data = report.to_json()
    data["model"] = found.where
    data["family"] = found.family
    data["forward_check"] = found.to_json()["forward_check"]
    if certified is not None:
        data["certified"] = certified.to_json()
    data["pieces"] = dict(_pieces(report))
    data["p1"] = _paid(setting)[1]
    data["proxies"] = [
        {"name": p.name, "kind": "proxy", "log10": p.log_value / math.log(10)}
        if isinstance(p, Proxy)
        else {"refusal": str(p)}
        for p in proxies(found)
    ]
    if solve and report.best is not None and no_member(_paid(setting)[0]) is None:
        from boundcalc.engine.needs import needs

        data["needs"] = needs(setting)
    write_json(data)


def _paid(setting: Setting) -> tuple[Setting, float]:
    """The setting at its grid, and what P1 adds to log(1/delta)."""
    from boundcalc.base.numbers import FLOAT
    from boundcalc.statements.posthoc import pay, union

    paid, measured = pay(setting)
    return paid, 0.0 if measured is None else float(union(FLOAT, paid, measured))


def _made_of(report: Report) -> str:
    """Whose pieces are shown: the gap bound's, or the risk bound's where that of the gap is trivial."""
    return "risk" if report.best is not None and report.best.trivial else "gap"


def _pieces(report: Report) -> Mapping[str, float]:
    """The shares of the best bound of the gap, or of the risk."""
    best = report.best
    if best is None:
        return {}
    proof = best.by_risk if best.trivial else best.by_gap
    return {} if proof is None else proof.pieces


def _layers(pieces: Mapping[str, float]) -> None:
    """A row per layer: its share, and the pieces it has most of it from."""
    from boundcalc.cli.text import Line, write_table

    layers: dict[str, dict[str, float]] = {}
    for key, share in pieces.items():
        place = key.partition("[")[2].rstrip("]").partition(",")[0]
        kind = key.partition("[")[0]
        layer = layers.setdefault(f"block {place}" if place else "outside the blocks", {})
        layer[kind] = layer.get(kind, 0.0) + share
    ranked = sorted(layers.items(), key=lambda item: -sum(item[1].values()))
    lines: list[Line] = []
    for name, kinds in ranked[:_LAYERS]:
        top = sorted(kinds.items(), key=lambda item: -item[1])[:3]
        words = ", ".join(f"{kind} {share:.1%}" for kind, share in top)
        lines.append(Line([name, f"{sum(kinds.values()):.1%}", words]))
    if len(ranked) > _LAYERS:
        rest = sum(sum(kinds.values()) for _, kinds in ranked[_LAYERS:])
        more = len(ranked) - _LAYERS
        lines.append(Line([f"{more} other{'s' * (more > 1)}", f"{rest:.1%}", ""]))
    write_table(["layer", "share", "most of it from"], lines, right=frozenset([1]))


def _proxies(found: Audit) -> list[str]:
    from boundcalc.checkpoints.proxies import Proxy, proxies
    from boundcalc.cli.values import upper

    lines: list[str] = []
    for proxy in proxies(found):
        if isinstance(proxy, Proxy):
            top = max(proxy.parts, key=proxy.parts.__getitem__)
            size = upper(proxy.log_value / math.log(10))
            lines.append(f"  ~{size}   {proxy.name}; most from {top} ({proxy.parts[top]:.0%})")
        else:
            lines.append(f"  refused: {proxy}")
    return lines
