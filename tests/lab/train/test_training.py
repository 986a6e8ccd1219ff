"""The trainer: what it learns, what it records, and that nothing depends on what should not matter."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from boundcalc.base.confidence import clopper_pearson  # noqa: E402
from boundcalc.base.errors import BoundcalcError, InvalidSetting, Unsupported  # noqa: E402
from boundcalc.base.progress import Progress  # noqa: E402
from boundcalc.lab.train.bits import bit_forward, bit_plan  # noqa: E402
from boundcalc.lab.train.bounds import by_block  # noqa: E402
from boundcalc.lab.train.data import Examples  # noqa: E402
from boundcalc.lab.train.device import resolve  # noqa: E402
from boundcalc.lab.train.optim import StackedOptimiser, nearest, project_on_balls  # noqa: E402
from boundcalc.lab.train.parameters import parameters  # noqa: E402
from boundcalc.lab.train.run import run_sweep, stacks_of  # noqa: E402
from boundcalc.lab.train.store import Store  # noqa: E402
from boundcalc.lab.train.sweep import sweep_from_json  # noqa: E402
from boundcalc.lab.train.tasks import (  # noqa: E402
    ArraysTask,
    BooleanTask,
    GaussianLinearTask,
    MaskedTokenTask,
)
from boundcalc.lab.train.trainer import stack_of, train  # noqa: E402
from boundcalc.lab.train.trial import Optimisation, Trial, model_for  # noqa: E402
from boundcalc.setting import Architecture, Attention, Layer, Linear, Pool  # noqa: E402

DEVICES = [
    "cpu",
    *(["cuda"] if torch.cuda.is_available() else []),
    *(["mps"] if torch.backends.mps.is_available() else []),
]
SMALL: dict[str, Any] = {"d": 32, "heads": 8, "d_ff": 64}


def conjunction(seed: int = 0, m: int = 48, T: int = 12, **rule: Any) -> Trial:
    task = BooleanTask(T=T, s=2)
    values: dict[str, Any] = {"lr": 4e-3, "steps": 300, **rule}
    return Trial(task, model_for(task, **SMALL), m, seed, 256, optimisation=Optimisation(**values))


@pytest.mark.parametrize("device", DEVICES)
def test_conjunctions_are_learned_and_recorded(device: str) -> None:
    outcomes = train([conjunction(seed).but(device=device) for seed in range(4)])
    for outcome in outcomes:
        result = outcome.result
        json.dumps(result, allow_nan=False)
        assert result["reason"] == "training loss reached"
        assert result["train"]["wrong"] == 0
        assert result["train"]["loss"] < 5e-3
        wrong, n = result["test"]["wrong"], result["test"]["n"]
        assert result["test"]["interval"] == pytest.approx(list(clopper_pearson(wrong, n)))
        assert result["gap"] == wrong / n
        assert result["curves"][0]["step"] == 0
        assert result["curves"][-1]["step"] == result["steps"]
        assert len(result["world"]["coordinates"]) == 2
        assert 0 < result["attention"][0]["value_weighted"] <= result["attention"][0]["best_head"] <= 1
        assert result["device"].startswith(device)
        assert result["cpu_seconds"] > 0
        assert set(by_block(result)) >= {"W_QK[0]", "W_V[0]", "W_1[0]", "readout", "embedding", "positions"}
    assert sum(o.result["test"]["error"] < 0.02 for o in outcomes) >= 3


def test_the_recorded_test_error_is_that_of_the_returned_weights() -> None:
    from boundcalc.lab.train.model import plain

    trial = conjunction(3, m=8, T=40)
    outcome = train([trial])[0]
    x, y = Examples(trial, torch.device("cpu")).test
    scores = plain(trial.architecture, outcome.weights, torch.cat([torch.full((len(x), 1), 2), x], 1).long())
    wrong = int(((scores.squeeze(-1) > 0) != (y == 1)).sum())
    assert wrong == outcome.result["test"]["wrong"]
    assert wrong > 0


def test_a_stack_gives_what_single_trials_give() -> None:
    """The same numbers but for the order of sums; the same stack again gives the same bits."""
    trials = [conjunction(seed, m) for seed, m in ((0, 20), (1, 30), (2, 18), (3, 40))]
    together, again = train(trials), train(trials)
    for one, two, trial in zip(together, again, trials, strict=True):
        assert one.result["test"] == two.result["test"]
        assert one.result["curves"] == two.result["curves"]
        assert all(torch.equal(one.weights[k], two.weights[k]) for k in one.weights)
        alone = train([trial])[0]
        assert alone.result["steps"] == one.result["steps"]
        assert max(float((alone.weights[k] - one.weights[k]).abs().max()) for k in one.weights if "b_K" not in k) < 1e-3
    mates = stack_of(trials[2], together[2].result)
    assert [t.hash for t in mates] == [t.hash for t in trials]


def test_finished_trials_leave_the_stack() -> None:
    noisy = conjunction(3, 400, steps=120).but(task=BooleanTask(T=12, s=2, noise=0.4))  # which does not fit so soon
    outcomes = train([*(conjunction(seed, 18, steps=120) for seed in range(3)), noisy])
    *fit, late = [outcome.result for outcome in outcomes]
    assert all(result["steps"] < 120 and result["reason"] == "training loss reached" for result in fit)
    assert (late["steps"], late["reason"]) == (120, "steps used up")


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "sgd"])
def test_optimisers_are_torchs_own(optimiser: str) -> None:
    """Each trial must follow torch's own optimiser."""
    from boundcalc.lab.train.model import Transformer, plain

    extra: dict[str, Any] = {"momentum": 0.5} if optimiser == "sgd" else {}
    trials = [
        conjunction(
            seed, 12, batch=0, steps=6, lr=5e-3, weight_decay=0.1, optimiser=optimiser, precision="float64", **extra
        )
        for seed in range(3)
    ]
    for trial, outcome in zip(trials, train(trials), strict=True):
        from boundcalc.lab.train.source import substream

        generator = torch.Generator().manual_seed(substream(trial.seed, "init"))
        model = Transformer(trial.architecture, trial.init, generator).double()
        rule = trial.optimisation
        kinds: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
        theirs = kinds[optimiser](model.parameters(), lr=rule.lr, weight_decay=rule.weight_decay, **extra)
        examples = Examples(trial, torch.device("cpu"))
        assert examples.train is not None
        x, y = examples.train
        tokens = torch.cat([torch.full((len(x), 1), 2), x], 1).long()
        for _ in range(6):
            theirs.zero_grad()
            scores = plain(trial.architecture, model.weights, tokens).squeeze(-1)
            torch.nn.functional.binary_cross_entropy_with_logits(scores, y.double()).backward()
            theirs.step()
        for name, value in model.weights.items():
            if "b_K" not in name:  # its gradient is zero but for rounding, which Adam makes large
                assert float((value - outcome.weights[name]).detach().abs().max()) < 1e-8, name


def test_warm_up_and_clipping_change_the_first_step_as_they_should() -> None:
    base = conjunction(0, 16, batch=0, steps=1, optimiser="sgd", lr=1.0)
    start = train([base.but(optimisation=replace(base.optimisation, lr=1e-30))])[0].weights

    def moved(**rule: Any) -> float:
        after = train([base.but(optimisation=replace(base.optimisation, **rule))])[0].weights
        return math.sqrt(sum(float((after[k] - start[k]).square().sum()) for k in start))

    whole = moved()
    assert moved(warmup=4) == pytest.approx(whole / 4, rel=1e-4)
    assert moved(clip=whole / 10) == pytest.approx(whole / 10, rel=1e-4)
    assert moved(clip=whole * 10) == pytest.approx(whole, rel=1e-6)


def test_divergence_ends_the_trial_and_not_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = conjunction(0, steps=120), conjunction(1, m=24, steps=120)
    own = Examples.batch

    def spoiled(self: Examples, size: int) -> Any:
        x, y = own(self, size)
        return x, y * math.nan if self.trial.seed == 1 else y

    monkeypatch.setattr(Examples, "batch", spoiled)
    outcomes = train([bad, good])
    assert outcomes[0].result["status"] == "diverged"
    assert "not finite" in outcomes[0].result["reason"]
    assert "norms" not in outcomes[0].result
    json.dumps(outcomes[0].result, allow_nan=False)
    assert outcomes[1].result["status"] == "done"
    assert outcomes[1].result["test"]["error"] == train([good])[0].result["test"]["error"]


@pytest.mark.parametrize("path", ["row", "plain"])
def test_every_path_trains_alike(path: str) -> None:
    trial = conjunction(0, 24, precision="float64", steps=60)
    fast, slow = train([trial])[0], train([trial], path=path)[0]
    assert fast.result["path"] == "bits"
    assert slow.result["path"] == path
    assert slow.result["test"]["loss"] == pytest.approx(fast.result["test"]["loss"], rel=1e-4)


def test_an_epoch_shows_every_example_once() -> None:
    examples = Examples(conjunction(0, 48), torch.device("cpu"))
    assert examples.train is not None
    for _ in range(3):
        seen = torch.cat([examples.batch(16)[0] for _ in range(3)])
        assert sorted(map(tuple, seen.tolist())) == sorted(map(tuple, examples.train[0].tolist()))


def test_test_examples_are_not_the_training_examples() -> None:
    examples = Examples(conjunction(0, 48, T=40), torch.device("cpu"))
    assert examples.train is not None
    assert not set(map(tuple, examples.train[0].tolist())) & set(map(tuple, examples.test[0].tolist()))


OTHER = [
    (GaussianLinearTask(L=8, p=2), {}, 256),
    (MaskedTokenTask(L=6, V=4), {"normalisation": "layernorm", "depth": 2}, 64),
    (MaskedTokenTask(L=8, V=5), {"style": "pre", "normalisation": "rmsnorm", "gated": True, "bias": False}, 64),
    (BooleanTask(T=8, s=2, function="parity"), {"style": "edelman", "heads": 4, "d_ff": None}, 32),
    (BooleanTask(T=8, s=2, noise=0.1), {"style": "post", "normalisation": "layernorm", "readout": "mean"}, 32),
]


@pytest.mark.parametrize(("task", "model", "m"), OTHER, ids=lambda v: getattr(v, "kind", None))
def test_every_kind_of_task_trains(task: Any, model: dict[str, Any], m: int) -> None:
    given = {name: value for name, value in {**SMALL, **model}.items() if value is not None}
    trial = Trial(task, model_for(task, **given), m, 0, 128, optimisation=Optimisation(steps=150, lr=3e-3, batch=32))
    result = train([trial, trial.but(seed=1)])[0].result
    assert result["status"] == "done"
    assert result["train"]["loss"] < result["curves"][0]["train_loss"]
    low, high = result["test"]["interval"]
    assert low <= result["test"]["error"] <= high
    assert "norms" in result


def test_a_users_arrays_train(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (400, 6))
    np.savez(tmp_path / "d.npz", x=x, y=(x[:, 0] >= 2).astype(int))
    task = ArraysTask(path=str(tmp_path / "d.npz"))
    trial = Trial(task, model_for(task, **SMALL), 200, 0, 500, optimisation=Optimisation(lr=3e-3, steps=400))
    result = train([trial])[0].result
    assert result["test"]["n"] == 200
    assert result["test"]["error"] < 0.05
    with pytest.raises(InvalidSetting, match="leaves no test example"):
        trial.but(m=400)


def test_online_training_stops_at_a_test_error() -> None:
    task = BooleanTask(T=8, s=2, function="parity")
    rule = Optimisation(lr=3e-3, batch=64, steps=800, stop_test_error=0.01, curve_every=20)
    result = train([Trial(task, model_for(task, **SMALL), 0, 0, 512, optimisation=rule)])[0].result
    assert result["reason"] == "test error reached"
    assert result["test"]["error"] <= 0.03
    assert result["steps"] % 20 == 0


# -- balls


def test_projections_are_nearest_points() -> None:
    rng = torch.Generator().manual_seed(0)
    matrix = torch.randn(6, 5, generator=rng, dtype=torch.float64)
    sizes: dict[str, Any] = {
        "op": lambda w: float(torch.linalg.matrix_norm(w, 2)),
        "F": lambda w: float(w.norm()),
        "21": lambda w: float(w.norm(dim=0).sum()),
    }
    for norm, size in sizes.items():
        radius = size(matrix) / 2
        found = nearest(matrix.unsqueeze(0), norm, radius)[0]
        assert size(found) == pytest.approx(radius)
        distance = float((found - matrix).norm())
        for _ in range(200):  # no other point of the ball is nearer
            other = found + 0.1 * torch.randn(6, 5, generator=rng, dtype=torch.float64)
            other = other * min(1.0, radius / size(other))
            assert float((other - matrix).norm()) >= distance - 1e-9
        assert torch.equal(nearest(matrix.unsqueeze(0), norm, 2 * size(matrix))[0], matrix)


def test_training_stays_in_its_balls() -> None:
    balls: dict[str, Any] = {"W_QK": ["op", 1.5], "W_V": ["21", 2.0], "W_1": ["F", 3.0], "positions": ["F", 4.0]}
    outcome = train([conjunction(0, 32, balls=balls, steps=80)])[0]
    norms = by_block(outcome.result)
    slack = 1 + 1e-5
    assert (norms["W_V[0]"].two_one or 0.0) <= 2.0 * slack
    assert (norms["W_1[0]"].fro or 0.0) <= 3.0 * slack
    w = outcome.weights
    products = w["W_Q[0]"][0] @ w["W_K[0]"][0].transpose(-1, -2)
    assert float(torch.linalg.matrix_norm(products, 2).max()) <= 1.5 * slack
    free = by_block(train([conjunction(0, 32, steps=80)])[0].result)
    assert (free["W_1[0]"].fro or 0.0) > 3.0 * slack  # negative control: without the ball it leaves
    joint = by_block(train([conjunction(0, 32, balls={"W_QK": ["21", 3.0]}, steps=80)])[0].result)
    assert (joint["W_QK[0]"].two_one or 0.0) <= 3.0 * slack
    assert (free["W_QK[0]"].two_one or 0.0) > 3.0 * slack
    weights = {"W_1[0]": torch.ones(2, 3, 3) * 9}
    project_on_balls(weights, {"W_1[0]": ("F", 1.0)})
    assert float(weights["W_1[0]"][0].norm()) == pytest.approx(1.0)


# -- devices and precisions


ON_DEVICE: dict[str, dict[str, Any]] = {
    "bits": {},
    "bits, LayerNorm": {"normalisation": "layernorm"},
    "pre-RMS, gated": {"style": "pre", "normalisation": "rmsnorm", "gated": True, "bias": False, "depth": 2},
    "edelman": {"style": "edelman", "heads": 4, "normaliser": "sigmoid"},
    "causal mean, classes": {"causal": True, "readout": "mean", "classes": 3},
}


@pytest.mark.parametrize("name", ON_DEVICE)
def test_every_step_stays_on_its_device(name: str) -> None:
    """On the meta device nothing can be computed by going through the host: only what is device-agnostic runs."""
    from boundcalc.lab.train.model import read_only
    from boundcalc.lab.train.stack import losses, margins, wrongs

    task = BooleanTask(T=12, s=2)
    given = SMALL | {k: v for k, v in ON_DEVICE[name].items() if k != "classes"}
    if given.get("style") == "edelman":
        del given["d_ff"]  # which that style has not
    architecture = model_for(task, **given)
    architecture = replace(architecture, classes=ON_DEVICE[name].get("classes", 1))
    shape = replace(task.shape, answer="classes" if architecture.classes > 1 else "binary")
    table = parameters(architecture)
    weights = {k: torch.empty(3, *p.shape, device="meta", requires_grad=True) for k, p in table.items()}
    y = torch.empty(3, 5, device="meta")
    with _no_host_reads():
        tokens = torch.empty(3, 5, 13, device="meta", dtype=torch.long)
        outputs = [torch.func.vmap(lambda w, x: read_only(architecture, w, x))(weights, tokens)]
        plan = bit_plan(architecture)
        if plan is not None:
            outputs.append(bit_forward(plan, weights, torch.empty(3, 5, 2, 12, device="meta"))[0])
        for out in outputs:
            loss = losses(shape, out, y).mean(1)
            grads = torch.autograd.grad(loss.sum(), list(weights.values()))
            found = [*grads, margins(shape, out, y), wrongs(shape, out, y)]
            assert all(value.device.type == "meta" for value in found)
            for optimiser in ("adam", "adamw", "sgd"):
                rule = Optimisation(optimiser=optimiser, clip=1.0)
                updated = StackedOptimiser({k: v.detach().clone() for k, v in weights.items()}, rule)
                updated.step(dict(zip(weights, grads, strict=True)))
                project_on_balls(updated.weights, {"W_V": ("op", 1.0), "W_1": ("21", 1.0), "readout": ("F", 1.0)})
                assert all(value.device.type == "meta" for value in updated.weights.values())


def test_the_check_of_devices_sees_a_tensor_made_on_the_host() -> None:
    """Negative control: one table left behind on the host is found out."""
    task = BooleanTask(T=12, s=2)
    architecture = model_for(task, **SMALL)
    plan = bit_plan(architecture)
    assert plan is not None
    weights = {k: torch.empty(3, *p.shape, device="meta") for k, p in parameters(architecture).items()}
    weights["positions"] = torch.zeros(weights["positions"].shape)
    with _no_host_reads(), pytest.raises(RuntimeError):
        bit_forward(plan, weights, torch.empty(3, 5, 2, 12, device="meta"))


class _no_host_reads:  # noqa: N801 - reads as a statement
    """Answers the one question that the forward pass asks of its data, as if scores were calm."""

    def __enter__(self) -> None:
        self.original = torch.Tensor.__bool__
        torch.Tensor.__bool__ = lambda t: True if t.device.type == "meta" else self.original(t)  # type: ignore

    def __exit__(self, *_: object) -> None:
        torch.Tensor.__bool__ = self.original  # type: ignore


def test_no_device_is_hard_coded() -> None:
    import boundcalc.lab.train

    folder = Path(boundcalc.lab.train.__file__).parent
    for path in folder.rglob("*.py"):
        text = path.read_text()
        assert ".cuda(" not in text, path
        assert '.to("cuda' not in text, path


def test_devices_that_are_not_there_are_refused() -> None:
    absent = next(d for d in ("cuda", "mps") if d not in DEVICES)
    with pytest.raises(InvalidSetting, match="--device"):
        resolve(absent)
    assert resolve("auto") in DEVICES


OPTIONS: dict[str, tuple[Any, ...]] = {
    "style": ("post", "pre", "edelman", "elsewhere"),
    "depth": (1, 3),
    "d": (24,),
    "heads": (1, 4),
    "d_head": (2, 16),
    "d_ff": (8,),
    "kv_heads": (2, 8),
    "activation": ("relu", "gelu", "gelu_tanh", "silu", "tanh", "identity", "mish", "quick_gelu"),
    "normaliser": ("softmax", "softmax1", "sigmoid", "linear", {"name": "softmax", "temperature": 2.0}, "sparsemax"),
    "normalisation": ("none", "layernorm", "rmsnorm", "ball"),
    "eps": (1e-3,),
    "variance_floor": (0.5,),
    "residual": (True, False),
    "bias": (True, False),
    "gated": (True,),
    "rope": (True,),
    "causal": (True,),
    "positions": ("none", "fixed", "learned"),
    "position_radius": (2.0,),
    "embedding_norm": (True,),
    "pooler": (True,),
    "readout": ("cls", "mean"),
    "input_radius": (2.0,),
    "vocabulary": (5,),
    "own_row": (2,),
    "d_patch": (4,),
    "classes": (3,),
    "seq_len": (7,),
    "bits": (16,),
}
"""Values for every field of an architecture."""
_ALWAYS = {
    ("style", "elsewhere"),
    ("kv_heads", "8"),
    ("normaliser", "sparsemax"),
    ("rope", "True"),
    ("vocabulary", "5"),
    ("d_patch", "4"),
    ("classes", "3"),
    ("bits", "16"),
}
NOT_TRAINED: dict[str, set[tuple[str, str]]] = {
    "post": _ALWAYS,
    "pre": _ALWAYS,
    "edelman": _ALWAYS - {("rope", "True")},
}
"""What is refused, in one line, beside what would change nothing."""


def test_every_field_of_an_architecture_is_tried() -> None:
    assert set(OPTIONS) == {f.name for f in fields(Architecture)} - {"layers"}


@pytest.mark.parametrize("style", NOT_TRAINED)
def test_every_option_of_an_architecture_trains_or_is_refused_in_one_line(style: str) -> None:
    task = BooleanTask(T=6, s=2)
    refused: dict[tuple[str, str], str] = {}
    for name, values in OPTIONS.items():
        for value in values:
            model = {"d": 16, "heads": 4, "style": style, name: value}
            try:
                rule = Optimisation(steps=2)
                trial = Trial(task, model_for(task, **model), 12, 0, 16, optimisation=rule)
            except BoundcalcError as error:
                if f"{name} = {value} would change nothing" not in str(error):
                    refused[name, str(value)] = str(error)
                continue
            result = train([trial])[0].result
            assert result["status"] == "done"
            assert math.isfinite(result["test"]["loss"])
    assert set(refused) == NOT_TRAINED[style], refused
    assert not any("\n" in text for text in refused.values())


# -- sweeps


def small_sweep(**changes: Any) -> Any:
    data: dict[str, Any] = {
        "name": "tiny",
        "task": {"task": "conjunction", "s": 2},
        "model": SMALL,
        "train": {"lr": 4e-3, "steps": 40},
        "n_test": 64,
        "seeds": 3,
        "grid": {"T": [8, 10], "m": [8, 12]},
    }
    return sweep_from_json(data | changes)


def test_a_sweep_does_what_is_missing_and_can_be_checked(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        first = run_sweep(small_sweep(), store, stack=5)
        assert (first.total, first.present, first.added) == (12, 0, 12)
        again = run_sweep(small_sweep(), store)
        assert (again.present, again.added) == (12, 0)
        more = run_sweep(small_sweep(grid={"T": [8, 11], "m": [8, 12]}), store)
        assert (more.present, more.added) == (6, 6)
        assert store.verify() == []
        record = next(iter(store.records()))
    mates = stack_of(record.trial, record.result)
    again = {o.trial.hash: o.result for o in train(mates, path=record.result["path"])}[record.hash]
    assert (again["test"], again["curves"]) == (record.result["test"], record.result["curves"])  # to the bit
    other = train([mates[0].but(seed=99)])[0].result
    assert other["curves"] != record.result["curves"]


def test_stacks_hold_only_what_may_share_one() -> None:
    stacks = stacks_of(small_sweep(grid={"T": [8, 10], "m": [20, 24, 8]}).trials, 4)
    assert sorted(map(len, stacks)) == [2, 2, 3, 3, 4, 4]  # m of 8 are full batches, which have stacks of their own
    assert all(len({t.task.T for t in stack}) == 1 for stack in stacks)  # type: ignore[attr-defined]


def test_an_interrupt_keeps_what_is_finished(tmp_path: Path) -> None:
    class Impatient(Progress):
        count = 0

        def advance(self, trials: int, done: int, total: int, left: float | None) -> None:
            self.count += 1
            if self.count == 3:
                raise KeyboardInterrupt

    with Store(tmp_path / "runs.db") as store:
        with pytest.raises(KeyboardInterrupt):
            run_sweep(small_sweep(), store, stack=2, progress=Impatient())
        assert len(store) == 3
        assert run_sweep(small_sweep(), store).added == 9
        assert store.verify() == []


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (Attention(4, d_head=2, qk="split", qk_norm="head", qk_eps=0.1), "normalised queries and keys"),
        (Attention(4, offsets="learned", buckets=2), "numbers added to scores"),
    ],
    ids=repr,
)
def test_what_is_bounded_but_not_trained_is_refused(layer: Layer, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        parameters(Architecture(layers=(layer, Pool(), Linear("readout", 4, 1)), seq_len=3))
