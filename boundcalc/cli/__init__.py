"""The command line. Commands are named here and imported when they are run, so each costs only what it needs.

To add one, add its name and a line of help to `GROUPS`, and a module of that name with the click command `command`.
"""

from __future__ import annotations

import click

from boundcalc.cli._lazy import LazyGroup
from boundcalc.cli._options import option

GROUPS: dict[str, dict[str, str]] = {
    "Bounds": {
        "eval": "Bounds of the generalization gap and of the risk for a setting.",
        "solve": "How large m, T, C, depth, gamma or delta must or may be.",
        "verify": "Re-derive the value of a certificate.",
    },
    "Theorems and formulas": {
        "explain": "Everything that has a name: a list, or one of them in full.",
        "derive": "A theorem as a formula, with its proof; as text, LaTeX, BibTeX or code.",
    },
    "Models": {
        "norms": "Certified norms of a checkpoint, layer by layer.",
        "certify": "What is proved of a trained model: a verdict, by every certificate that applies.",
    },
    "Experiments": {
        "train": "Train one model; its gap, its norms and every bound that applies.",
        "sweep": "Train the trials of a sweep that the store does not have; list a store.",
    },
    "Figures": {
        "plot": "Bounds along an axis, next to measured runs.",
        "explore": "Interactive bounds and floors, as a page.",
    },
    "Functions and latent variables": {
        "represent": "A sparse Boolean function as explicit, certified weights.",
        "latent": "What attention infers from pairs, with bounds of its errors.",
    },
}
"""The commands as --help lists them: NAME is `command` of boundcalc.cli.NAME."""

_FIGURES = {name: f"edelman2022/{name}" for name in ("constants", "length", "norms", "parity", "samples", "training")}
_FIGURES |= {"both-sides": "edelman2022/both_sides", "explained": "edelman2022/explained"}
_FIGURES |= {"attention-error": "zhang2022/infer", "gap-vs-L": "zhang2022/learn"}
_LATENT = ("sufficient", "minimal", "learn", "desired", "transfer", "pretrain", "patches")
REMOVED: dict[str, str] = {
    "sparse": "run python examples/edelman2022/sparse.py",
    "doctor": "a command that needs a library names it, with what to install",
    "export": "`boundcalc derive --format latex|bibtex|python|javascript` prints the formula",
    "gallery": "`boundcalc plot` draws bounds along an axis; examples/*/NAME.py -o NAME.png the figures of the papers",
    "threshold": "`python examples/edelman2022/samples.py` finds m* and its growth with T",
    "tightness": "`python examples/edelman2022/both_sides.py` prints bounds next to floors, constants.py the ladder",
    "list": "`boundcalc explain` lists everything that has a name",
    "runs": "`boundcalc sweep --store FILE` lists the trials; boundcalc.lab.train.store.Store has them",
    "latent infer": "run `boundcalc latent FILE`; examples/zhang2022/infer.py for a known law",
    "latent attend": "run `boundcalc latent FILE`",
    "latent bound": "run `boundcalc eval --bound X3`, X4 or X6, with --set NAME=VALUE",
    "latent posterior": "boundcalc.lab.latent.models has posteriors as numbers",
    "latent extendible": "run python examples/zhang2022/exchangeable.py",
    **{f"plot {name}": f"run python examples/{script}.py" for name, script in _FIGURES.items()},
    **{f"latent {name}": f"run python examples/zhang2022/{name}.py" for name in _LATENT},
}
"""Commands of earlier versions, and what does their job now."""


@click.group(
    cls=LazyGroup,
    groups=GROUPS,
    removed=REMOVED,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  boundcalc eval --depth 2 --T 512
  boundcalc eval --preset bert --T 128 --m 1e8 --C 2 --format json
  boundcalc solve --for m --target 0.1 --depth 4
  boundcalc explain A1

Every command has its own --help with examples. Exit codes: 0 done, 1 failed, 2 wrong usage.""",
)
@click.version_option(None, "-V", "--version", package_name="boundcalc", message="%(package)s %(version)s")
@option("--debug", bool, "Show the traceback of an error (anywhere on the line).", expose_value=False)
def main() -> None:
    """Generalization bounds for Transformers, with every constant explicit and every value checked."""
