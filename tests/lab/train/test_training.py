"""The trainer: what it learns, what it records, and that nothing depends on what should not matter."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from boundcalc.base.answers import clopper_pearson  # noqa: E402
from boundcalc.base.errors import BoundcalcError  # noqa: E402
from boundcalc.lab.train._data import Examples  # noqa: E402
from boundcalc.lab.train.bounds import by_block  # noqa: E402
from boundcalc.lab.train.optim import nearest  # noqa: E402
from boundcalc.lab.train.parameters import parameters  # noqa: E402
from boundcalc.lab.train.run import run_sweep  # noqa: E402
from boundcalc.lab.train.store import Store  # noqa: E402
from boundcalc.lab.train.sweep import sweep_from_json  # noqa: E402
from boundcalc.lab.train.tasks import BooleanTask  # noqa: E402
from boundcalc.lab.train.trainer import device, train  # noqa: E402
from boundcalc.lab.train.trial import Optimisation, Trial, model_for  # noqa: E402
from boundcalc.setting import Architecture, Attention, Linear, Normaliser, Pool  # noqa: E402

SMALL: dict[str, Any] = {"d": 32, "heads": 8, "d_ff": 64}


def conjunction(seed: int = 0, m: int = 48, T: int = 12, **rule: Any) -> Trial:
    task = BooleanTask(T=T, s=2)
    values: dict[str, Any] = {"lr": 4e-3, "steps": 300, **rule}
    return Trial(task, model_for(task, **SMALL), m, seed, 256, optimisation=Optimisation(**values))


def test_conjunctions_are_learned_and_recorded() -> None:
    outcomes = train([conjunction(seed) for seed in range(4)])
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
        assert 0 < result["attention"][0]["mean"] <= result["attention"][0]["best_head"] <= 1
        assert result["cpu_seconds"] > 0
        assert set(by_block(result)) >= {"W_QK[0]", "W_V[0]", "W_1[0]", "readout", "embedding", "positions"}
    assert sum(o.result["test"]["error"] < 0.02 for o in outcomes) >= 3


def test_the_recorded_test_error_is_that_of_the_returned_weights() -> None:
    from boundcalc.lab.train.model import plain

    trial = conjunction(3, m=8, T=40)
    outcome = train([trial])[0]
    x, y = Examples(trial).test
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


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_optimiser_is_torchs_own(decay: float) -> None:
    """Each trial follows AdamW on the plain module, and Adam where nothing decays."""
    from boundcalc.lab.train.model import draw_weights, plain
    from boundcalc.lab.train.source import substream

    trials = [conjunction(seed, 12, batch=0, steps=6, lr=5e-3, weight_decay=decay) for seed in range(3)]
    for trial, outcome in zip(trials, train(trials), strict=True):
        generator = torch.Generator().manual_seed(substream(trial.seed, "init"))
        weights = draw_weights(trial.architecture, trial.init, generator)
        kind, rule = torch.optim.AdamW if decay else torch.optim.Adam, trial.optimisation
        theirs = kind([w.requires_grad_() for w in weights.values()], lr=rule.lr, weight_decay=decay)
        examples = Examples(trial)
        assert examples.train is not None
        x, y = examples.train
        tokens = torch.cat([torch.full((len(x), 1), 2), x], 1).long()
        for _ in range(6):
            theirs.zero_grad()
            scores = plain(trial.architecture, weights, tokens).squeeze(-1)
            torch.nn.functional.binary_cross_entropy_with_logits(scores, y.float()).backward()
            theirs.step()
        for name, value in weights.items():
            if "b_K" not in name:  # its gradient is zero but for rounding, which Adam makes large
                assert float((value - outcome.weights[name]).detach().abs().max()) < 1e-5, name


def test_divergence_ends_the_trial_and_not_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = conjunction(0, steps=120), conjunction(1, m=24, steps=120)
    own = Examples.batch

    def spoiled(self: Examples) -> Any:
        x, y = own(self)
        return x, y * math.nan if self.trial.seed == 1 else y

    monkeypatch.setattr(Examples, "batch", spoiled)
    outcomes = train([bad, good])
    assert outcomes[0].result["status"] == "diverged"
    assert "not finite" in outcomes[0].result["reason"]
    assert "norms" not in outcomes[0].result
    json.dumps(outcomes[0].result, allow_nan=False)
    assert outcomes[1].result["status"] == "done"
    assert outcomes[1].result["test"]["error"] == train([good])[0].result["test"]["error"]


def test_test_examples_are_not_the_training_examples() -> None:
    examples = Examples(conjunction(0, 48, T=40))
    assert examples.train is not None
    assert not set(map(tuple, examples.train[0].tolist())) & set(map(tuple, examples.test[0].tolist()))


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
    balls: dict[str, Any] = {"W_Q": ["op", 1.5], "W_V": ["21", 2.0], "W_1": ["F", 3.0], "positions": ["F", 4.0]}
    outcome = train([conjunction(0, 32, balls=balls, steps=80)])[0]
    norms = by_block(outcome.result)
    slack = 1 + 1e-5
    assert (norms["W_V[0]"].two_one or 0.0) <= 2.0 * slack
    assert (norms["W_1[0]"].fro or 0.0) <= 3.0 * slack
    assert float(torch.linalg.matrix_norm(outcome.weights["W_Q[0]"], 2).max()) <= 1.5 * slack
    free = by_block(train([conjunction(0, 32, steps=80)])[0].result)
    assert (free["W_1[0]"].fro or 0.0) > 3.0 * slack  # negative control: without the ball it leaves
    assert (free["W_V[0]"].two_one or 0.0) > 2.0 * slack


# -- architectures


@pytest.mark.parametrize(
    ("attention", "model", "words"),
    [
        ({"offsets": "fixed"}, {}, "numbers added to scores"),
        ({"qk": "fixed"}, {}, "a query of the layer's own"),
        ({"qk": "split", "qk_norm": "head", "qk_eps": 1e-6, "d_head": 2}, {}, "normalised queries and keys"),
        ({"normaliser": Normaliser("custom", c=1.0, mu=1.0)}, {}, "normaliser 'custom'"),
        ({}, {"rope": True}, "rotary"),
        ({}, {"bits": 16}, "weights of 16 bits"),
    ],
)
def test_models_that_can_be_bounded_and_not_trained_are_refused(attention: Any, model: Any, words: str) -> None:
    """Left to itself each would be trained as another model than the bound is about."""
    layers = (Attention(4, block=0, **attention), Pool(), Linear("readout", 4, 1))
    refused = model_for(BooleanTask(T=6, s=2), **model) if model else Architecture(seq_len=5, layers=layers)
    with pytest.raises(BoundcalcError, match=words):
        parameters(refused)


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
        more = run_sweep(small_sweep(grid={"T": [8, 11], "m": [8, 12]}), store)  # of one value changed the trials alone
        assert (more.present, more.added) == (6, 6)
        record = next(iter(store.records()))
    mates = [record.trial.but(**mate) for mate in record.result["stack"]]
    again = {o.trial.hash: o.result for o in train(mates)}[record.hash]
    assert (again["test"], again["curves"]) == (record.result["test"], record.result["curves"])  # to the bit
    other = train([mates[0].but(seed=99)])[0].result
    assert other["curves"] != record.result["curves"]


def test_a_model_computes_on_the_device_of_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor of a forward and a backward pass: on torch's device without data, a mixture with the CPU fails."""
    from boundcalc.lab.train import _bits as bits
    from boundcalc.lab.train.stack import Stack, losses, with_read_row

    trial = conjunction()
    generators = [torch.Generator().manual_seed(seed) for seed in range(2)]
    stack = Stack.fresh(trial.architecture, trial.task.shape, trial.init, generators, "meta")
    monkeypatch.setattr(bits, "bool", lambda _: True, raising=False)  # no model is too sharp for the fast path
    x = torch.zeros(2, 5, 12, dtype=torch.uint8, device="meta")
    y = torch.zeros(2, 5, dtype=torch.uint8, device="meta")
    assert stack.plan is not None
    for outputs in (
        bits.bit_forward(stack.plan, stack.weights, stack.inputs(x))[0],
        stack._row(stack.weights, with_read_row(x)),
    ):
        losses(trial.task.shape, outputs, y).sum().backward()
        assert stack.weights["readout"].grad is not None
        assert stack.weights["readout"].grad.device.type == outputs.device.type == "meta"
    cpu = {name: torch.zeros(value.shape) if name == "readout" else value for name, value in stack.weights.items()}
    with pytest.raises(RuntimeError, match="device"):
        stack._row(cpu, with_read_row(x))


def test_training_is_on_the_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert train([conjunction(steps=2)])[0].result["device"] == device().type
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    assert device() == torch.device("cuda")
