"""The gallery: which plates there are, and which sweeps they need."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boundcalc.base.documents import read_document
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.plot.registry import FIGURES
from boundcalc.setting import validate

if TYPE_CHECKING:
    from boundcalc.lab.latent.experiments.learn import LearnPlan


@dataclass(frozen=True)
class Plate:
    """One picture of the gallery.

    Attributes:
        name: of its files.
        title: a heading.
        spec: of the figure, without the store.
        sweep: whose trials it shows; empty for predicted curves alone.
        certified: sweeps whose certificates it shows.
        vector: whether a PDF stands beside the PNG.
        quick: what of the specification is another in a quick gallery.
    """

    name: str
    title: str
    spec: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sweep: str = ""
    certified: tuple[str, ...] = ()
    vector: bool = False
    quick: Mapping[str, Any] = field(default_factory=dict[str, Any])


_ASKED = ("best", "closed", "published")
"""Where every bound is vacuous, how many samples these ask for."""

_OVER_M: Mapping[str, Any] = {"values": [16, 1e3, 1e5, 1e7]}
_TINY_MODELS: Mapping[str, Any] = {"target": 0.1}
"""What counts as learned by tiny models on few examples."""


def _alone(name: str, title: str, quick: Sequence[float] = (), **more: Any) -> Plate:
    """The plate of a figure that shows no trials, as the figure is; and its few values in a quick gallery."""
    values = {"values": list(quick)} if quick else {}
    return Plate(name, title, {"figure": name}, quick=values | more)


PLATES: Sequence[Plate] = (
    Plate(
        "overlay",
        "Conjunctions of 3 among 128 bits: what is proved, and what is seen",
        {"figure": "overlay", "norms": "runs"},
        "overlay",
        ("certified", "certified-small"),
        vector=True,
        quick=_OVER_M,
    ),
    Plate(
        "sample-complexity",
        "Samples needed against T",
        {"figure": "sample-complexity", "norms": "runs"},
        "conjunction",
        ("certified", "certified-small"),
        quick=_TINY_MODELS,
    ),
    Plate(
        "sample-laws",
        "Two laws, more and fewer bits that matter, other widths",
        {"figure": "sample-laws"},
        "laws",
        quick=_TINY_MODELS,
    ),
    Plate("parity", "Parity: a phase transition", {"figure": "parity"}, "parity"),
    Plate("parity-growth", "Parity over T and s", {"figure": "parity-growth"}, "parity-growth"),
    Plate(
        "parity-late",
        "Parity from few examples: late generalisation",
        {"figure": "parity", "runs": {"m": 150}},
        "parity-late",
        quick={"runs": {"m": 48}},
    ),
    Plate("tightness", "Bounds over measured gaps", {"figure": "tightness", "norms": "runs"}, "overlay"),
    Plate(
        "attention",
        "Attention finds the coordinates that matter",
        {"figure": "attention"},
        "conjunction",
        quick=_TINY_MODELS,
    ),
    Plate("attention-training", "Attention over training", {"figure": "attention"}, "training", quick=_TINY_MODELS),
    _alone("attention-mass", "Sparse on what matters, or nearly even", (40,)),
    Plate("norms", "Norms of trained weights", {"figure": "norms"}, "conjunction"),
    Plate("norms-training", "Norms over training", {"figure": "norms"}, "training"),
    Plate(
        "norms-layers",
        "Norms layer by layer",
        {"figure": "norms", "runs": {"depth": 8, "m": 64}},
        "depth",
        quick={"runs": {"depth": 2, "m": 64}},
    ),
    Plate(
        "gap-vs-T-measured",
        "Longer sequences, trained",
        {
            "figure": "gap-vs-T",
            "runs": {"m": 48},
            "norms": "runs",
            "values": [32, 64, 128, 256, 512, 1024],
            "bounds": list(_ASKED),
        },
        "conjunction",
        quick={"runs": {"m": 32}, "values": [8, 16, 32]},
    ),
    Plate(
        "gap-vs-depth-measured",
        "Deeper models, trained",
        {"figure": "gap-vs-depth", "runs": {"m": 64}, "norms": "runs", "values": [1, 2, 4, 8], "bounds": list(_ASKED)},
        "depth",
        quick={"values": [1, 2]},
    ),
    _alone("gap-vs-m", "The gap bound against m", _OVER_M["values"]),
    _alone("gap-slopes", "Slopes of the gap, where bounds say something", (250, 500), repetitions=10),
    Plate(
        "gap-vs-T",
        "The gap bound against T",
        {"figure": "gap-vs-T", "setting": {"sample": {"n_train": 10**8}}},  # where those that grow say something, too
        quick={"values": [64, 1024]},
    ),
    _alone("gap-vs-depth", "The gap bound against depth", (1, 2, 4)),
    _alone("gap-vs-C", "The gap bound against the norms allowed", (0.5, 1, 2)),
    _alone("constants", "From published constants to the best bound"),
    _alone("breakdown", "Where the entropy goes", (1, 3)),
    _alone("norms-vs-s", "Norms that represent sparse functions", (1, 2, 3, 4, 6)),
    _alone("posterior-contraction", "Posteriors contract", (4, 32, 256), repetitions=50),
    _alone("attention-error", "Attention finds the conditional mean", (8, 64, 128, 256), repetitions=50),
    _alone("attention-smooth", "A conditional mean that is not linear", (8, 64, 256), repetitions=50),
    _alone("minimality", "Trained representations are posteriors", (1, 30)),
    _alone("desired", "Learning the desired parameter", (100, 1000)),
    _alone("pretext", "From masked tokens to a task never seen", (30,), repetitions=50),
    Plate("gap-vs-L", "Learning independent of the input size", {"figure": "gap-vs-L"}, "latent-masked"),
    Plate(
        "gap-vs-L-supervised",
        "The same, supervised: bounds are proxies there",
        {"figure": "gap-vs-L", "runs": {"task": "gaussian-linear"}},
        "latent-supervised",
    ),
    _alone("kappa", "What the diversity of pretext tasks is worth", repetitions=50),
)

CERTIFIED: Mapping[str, Sequence[str]] = {
    "certified": ("holdout", "p2l", "occam"),
    "certified-small": ("occam", "pac-bayes"),
}
"""By what the trials of a sweep are certified."""
_TINY: dict[str, Any] = {"d": 8, "heads": 1, "d_ff": 8}


def sweeps(*, quick: bool) -> dict[str, dict[str, Any]]:
    """The sweeps of the gallery, as `sweep_from_json` reads them."""
    from boundcalc.lab.latent.experiments.learn import LearnPlan
    from boundcalc.lab.train.presets import PRESETS

    if quick:
        found = read_document(Path(__file__).with_name("quick.toml"), "the quick gallery")
        return found | _latent(LearnPlan(lengths=(4, 8, 16), samples=(16, 32), seeds=3, steps=60, n_test=512))
    found = {name: copy.deepcopy(PRESETS[name]) for name in _AS_THEY_ARE}
    found["laws"] = _laws()
    found["overlay"] = {
        **copy.deepcopy(PRESETS["conjunction"]),
        "about": "gaps from where nothing is learned to where they vanish, at T = 128",
        "seeds": 20,
        "grid": {"T": 128, "m": [16, 20, 24, 28, 32, 40, 48, 56, 80, 128, 192, 256, 512]},
    }
    fresh = {**copy.deepcopy(PRESETS["conjunction"]), "seeds": [301, 302, 303, 304, 305], "n_test": 20_000}
    fresh["grid"] = {"T": 128, "m": [100, 300, 1000, 3000, 10_000]}
    found["certified"] = {**fresh, "about": "certificates of trained predictors, on seeds no setting was chosen on"}
    found["certified-small"] = {**fresh, "model": _TINY, "about": "the same for a model of width 8 with one head"}
    found["training"] = {
        **copy.deepcopy(PRESETS["conjunction"]),
        "about": "the same trials stopped after more and more steps",
        "seeds": 20,
        "grid": {"T": 128, "m": 80, "train.steps": [1, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200]},
    }
    found["training"]["train"]["stop_loss"] = 0.0
    return found | _latent(LearnPlan())


_AS_THEY_ARE = ("conjunction", "parity", "parity-growth", "parity-late", "depth")


def _laws() -> dict[str, Any]:
    """Three presets, and the balanced law's s = 3 as the preset conjunction has it."""
    from boundcalc.lab.train.presets import PRESETS

    natural, sparse, wide = (PRESETS[f"conjunction-{name}"] for name in ("natural", "sparsity", "width"))
    grid = [{"task.law": "natural", **places} for places in natural["grid"]]
    grid += copy.deepcopy(sparse["grid"])
    grid += [
        {"s": 3, **places, "T": T} for places in PRESETS["conjunction"]["grid"] for T in places["T"] if T in _LENGTHS
    ]
    grid += [{"s": 3, "T": wide["task"]["T"], **places} for places in wide["grid"]]
    about = "conjunctions of 2, 3, 4 bits under two laws, and models of other widths"
    return {**copy.deepcopy(sparse), "about": about, "grid": grid}


_LENGTHS = (32, 128, 512)


def _latent(plan: LearnPlan) -> dict[str, dict[str, Any]]:
    """The sweeps of `boundcalc latent learn`."""
    found = {f"latent-{kind}": plan.sweep(kind) for kind in plan.kinds}
    return {name: {key: value for key, value in sweep.items() if key != "name"} for name, sweep in found.items()}


def sweep_name(name: str, *, quick: bool) -> str:
    """Under which name the store keeps a sweep of the gallery: with a digest, so that a changed one is another."""
    text = json.dumps(sweeps(quick=quick)[name], sort_keys=True)
    return f"{name}@{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def plate(name: str) -> Plate | None:
    """The plate of a name that is not a figure's: those draw the figure, whose trials and looks options say."""
    return None if name in FIGURES else next((plate for plate in PLATES if plate.name == name), None)


def chosen(only: Sequence[str], *, predicted: bool) -> list[Plate]:
    """The plates asked for."""
    names = [validate.choice("plate", name, [plate.name for plate in PLATES]) for name in only]
    found = [plate for plate in PLATES if not names or plate.name in names]
    found = [plate for plate in found if not (predicted and plate.sweep)]
    if not found:
        raise InvalidSetting("all of these plates show trials: leave out --predicted")
    return found
