"""The command line. Commands are named here and imported when they are run, so each costs only what it needs.

To add one, add a line to `COMMANDS`: its name, where the click command is, and one line of help.
"""

from __future__ import annotations

import click

from boundcalc.cli.lazy import LazyGroup

COMMANDS: dict[str, tuple[str, str]] = {
    "eval": ("boundcalc.cli.eval:command", "Bounds of the generalization gap and of the risk for a setting."),
    "solve": ("boundcalc.cli.solve:command", "How large m, T, C, depth, gamma or delta must or may be."),
    "verify": ("boundcalc.cli.verify:command", "Re-derive the value of a certificate."),
    "explain": ("boundcalc.cli.explain:command", "Everything that has a name: a list, or one of them in full."),
    "derive": ("boundcalc.cli.derive:command", "A bound as a formula, with its steps; as text, LaTeX, BibTeX or code."),
    "norms": ("boundcalc.cli.norms:command", "Certified norms of a checkpoint, layer by layer."),
    "certify": ("boundcalc.cli.certify:command", "A-posteriori bounds for a trained checkpoint."),
    "plot": ("boundcalc.cli.plot:command", "Bounds along an axis, next to measured runs."),
    "explore": ("boundcalc.cli.explore:command", "Interactive bounds and floors, as a page."),
    "train": ("boundcalc.cli.train:command", "Train one model; its gap, its norms and every bound that applies."),
    "sweep": ("boundcalc.cli.sweep:command", "Train every trial of a sweep that the store does not have."),
    "runs": ("boundcalc.cli.runs:command", "List, show, verify and remove stored trials."),
    "latent": ("boundcalc.cli.latent:command", "What attention infers from pairs, with bounds of its errors."),
    "represent": ("boundcalc.cli.represent:command", "A sparse Boolean function as explicit, certified weights."),
}

GROUPS: dict[str, tuple[str, ...]] = {
    "Bounds": ("eval", "solve", "verify"),
    "Theorems and formulas": ("explain", "derive"),
    "Models": ("norms", "certify"),
    "Experiments": ("train", "sweep", "runs"),
    "Figures": ("plot", "explore"),
    "Functions and latent variables": ("represent", "latent"),
}
"""The commands as --help lists them."""


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from boundcalc import __version__

        click.echo(f"boundcalc {__version__}")
        context.exit()


@click.group(
    cls=LazyGroup,
    commands_by_name=COMMANDS,
    groups=GROUPS,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
    epilog="""\b
Examples:
  boundcalc eval --depth 2 --T 512
  boundcalc eval --preset bert --T 128 --m 1e8 --C 2 --format json
  boundcalc solve --for m --target 0.1 --depth 4
  boundcalc explain A1

Every command has its own --help with examples. Exit codes: 0 done, 1 failed, 2 wrong usage.""",
)
@click.option(
    "-V", "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version."
)
@click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error (anywhere on the line)."
)
def main() -> None:
    """Generalization bounds for Transformers, with every constant explicit and every value checked."""
