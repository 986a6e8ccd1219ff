"""The weights in other hands: files, torch, and the models of boundcalc.lab.train. Skipped where these are missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from boundcalc.lab.represent.construct import Construction, construct, possible_kinds
from boundcalc.lab.represent.deep import deep
from boundcalc.lab.represent.exhaust import all_inputs
from boundcalc.lab.represent.export import load, save
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.network import Network
from boundcalc.lab.represent.positions import dual_bch, orthonormal

T = 10
TEXTS = ("AND(1, 4, 6)", "x0 & x3 | ~x0 & x5", "PARITY(0, 3, 5)")


def networks() -> list[Network]:
    made = [construct(parse(t).minimised(), orthonormal(T), possible_kinds(parse(t).minimised())[-1]) for t in TEXTS]
    outer = deep([[parse("x0 & x1"), parse("x2 | x3")], [parse("x0 ^ x1")]], T)
    return [*(m.network for m in made), outer.network]


def test_the_short_way_is_the_long_way() -> None:
    """Scores without rows, and layer by layer on rows, at both kinds of positions."""
    bits = all_inputs(T, 0, 1 << T)
    for network in networks():
        assert np.allclose(network.scores(bits), network.forward(network.encoding.rows(bits)), atol=1e-12)
    function = parse("x1 & ~x20").minimised()
    made = construct(function, dual_bch(64, 5, 2), "signed mean")
    bits = np.random.default_rng(0).integers(0, 2, (50, 64))
    network = made.network
    assert np.allclose(network.scores(bits), network.forward(network.encoding.rows(bits)), atol=1e-12)


def test_rows_have_norm_at_most_one() -> None:
    bits = all_inputs(T, 0, 64)
    for network in networks():
        size = np.linalg.norm(network.encoding.rows(bits), axis=-1)
        assert size.max() <= 1 + 1e-15


def test_padding_with_zeros_gives_the_class_of_the_paper() -> None:
    """Square matrices of style "edelman": the same values, and no norm larger."""
    network = networks()[1]
    d, block = network.encoding.width, network.blocks[0]
    k = block.w_v.shape[2]
    assert k <= d
    w_v, w_1, readout = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    w_v[:, :k], w_1[:k, 0], readout[0] = block.w_v[0], block.w_1[:, 0], network.readout[0]
    rows = network.encoding.rows(all_inputs(T, 0, 200))

    def project(x: np.ndarray) -> np.ndarray:
        return x / np.maximum(1.0, np.linalg.norm(x, axis=-1, keepdims=True))

    scores = rows[:, :1] @ np.outer(block.w_q[0], block.w_k[0]) @ rows.transpose(0, 2, 1)
    masses = np.exp(scores - scores.max(-1, keepdims=True))
    masses /= masses.sum(-1, keepdims=True)
    out = project(np.maximum(project(masses @ rows @ w_v), 0) @ w_1)[:, 0] @ readout
    assert np.allclose(out, network.forward(rows), atol=1e-12)
    assert np.isclose(np.linalg.norm(w_v, 2), np.linalg.norm(block.w_v[0], 2))


def test_npz_files_hold_the_weights(tmp_path: Path) -> None:
    network = networks()[0]
    with np.load(save(tmp_path / "weights.npz", network, {"a": 1})) as file:
        for name, array in network.weights().items():
            assert (file[name] == array).all()


def _loaded(network: Network):
    """A learning model with these weights, in float64."""
    torch = pytest.importorskip("torch")
    from boundcalc.lab.train.model import Transformer

    model = Transformer(network.architecture).double()
    with torch.no_grad():
        for name, value in network.weights().items():
            model.weights[name].copy_(torch.from_numpy(value))
    return torch, model


def test_plain_and_fast_models_compute_the_same() -> None:
    pytest.importorskip("torch")
    from boundcalc.lab.train.model import read_only

    bits = all_inputs(T, 0, 256)
    for network in networks():
        torch, model = _loaded(network)
        rows = torch.from_numpy(network.encoding.rows(bits))
        with torch.no_grad():
            plain = model(rows).squeeze(-1).numpy()
            fast = read_only(model.architecture, model.weights, rows).squeeze(-1).numpy()
        assert np.allclose(plain, network.scores(bits), atol=1e-10)
        assert np.allclose(fast, plain, atol=1e-10)


@pytest.mark.parametrize(("text", "most"), [("AND(1, 4, 6)", 1e-4), ("PARITY(0..39)", 2e-3)])
def test_single_precision_keeps_the_margin(text: str, most: float) -> None:
    torch = pytest.importorskip("torch")
    from boundcalc.lab.represent.exhaust import adversarial
    from boundcalc.lab.train.model import Transformer

    function = parse(text)
    made = construct(function, orthonormal(64), possible_kinds(function)[0])
    network = made.network
    bits = adversarial(network, function, np.random.default_rng(0), 400)[:200]
    model = Transformer(network.architecture)
    with torch.no_grad():
        for name, value in network.weights().items():
            model.weights[name].copy_(torch.from_numpy(value))
        found = model(torch.from_numpy(network.encoding.rows(bits)).float()).squeeze(-1).numpy()
    assert (found * (2.0 * function.values(bits) - 1)).min() > 1 - most


def test_safetensors_files_load_as_models(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    torch = pytest.importorskip("torch")
    from boundcalc.lab.train.model import load

    network = networks()[1]
    model = load(save(tmp_path / "weights.safetensors", network, {"a": 1}))
    bits = all_inputs(T, 0, 128)
    with torch.no_grad():
        found = model(torch.from_numpy(network.encoding.rows(bits)).float()).squeeze(-1).numpy()
    assert np.allclose(found, network.scores(bits), atol=1e-4)


@pytest.fixture(scope="module")
def conjunction() -> Construction:
    return construct(parse("AND(1, 4, 6)"), orthonormal(T), "mean")


def test_a_model_that_starts_at_the_construction_stays_right(conjunction: Construction) -> None:
    """Hinge loss at margin 1 is 0 there up to rounding, so training has nothing to change; with noise it comes back."""
    network = conjunction.network
    torch, model = _loaded(network)
    bits = all_inputs(T, 0, 1 << T)
    rows = torch.from_numpy(network.encoding.rows(bits))
    signs = torch.from_numpy(2.0 * conjunction.function.values(bits) - 1)
    parameters = list(model.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    optimiser = torch.optim.SGD(parameters, lr=0.05)
    for step in range(60):
        optimiser.zero_grad()
        loss = (0.999 - signs * model(rows).squeeze(-1)).clamp(min=0).mean()
        if step == 0:
            assert loss.item() == 0.0
        loss.backward()
        optimiser.step()
    assert all(torch.equal(a, b) for a, b in zip(before, parameters, strict=True))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in parameters:
            parameter += 0.02 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    for _ in range(150):
        optimiser.zero_grad()
        loss = (0.999 - signs * model(rows).squeeze(-1)).clamp(min=0).mean()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        assert (signs * model(rows).squeeze(-1)).min().item() > 0.5
        moved = max(((a - b).norm() / a.norm()).item() for a, b in zip(before, parameters, strict=True))
    assert 0 < moved < 1.0  # trained norms stay comparable with the constructed ones


@pytest.mark.parametrize(("compact", "ending"), [(True, "npz"), (False, "npz"), (True, "safetensors")])
def test_a_file_of_weights_is_evaluated_with_numpy_alone(tmp_path: Path, compact: bool, ending: str) -> None:
    """Rows, attention and read-out by the file's own content; nothing of boundcalc after it is written."""
    function = parse("MAJ(1, 5, 9)").minimised()
    network = construct(function, dual_bch(64, 5, 2) if compact else orthonormal(64), "mean").network
    path = save(tmp_path / f"w.{ending}", network, {})
    if ending == "npz":
        with np.load(path) as file:
            arrays = dict(file)
        encoding = json.loads(str(arrays["encoding"]))
    else:
        safe_open = pytest.importorskip("safetensors").safe_open
        with safe_open(str(path), framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            encoding = json.loads(file.metadata()["encoding"])
    n, count = encoding["dimension"], encoding["T"]
    table = arrays["encoding.signs"] * encoding["scale"] if compact else np.eye(count)
    bits = np.random.default_rng(0).integers(0, 2, (64, count))
    sign = (2.0 * bits - 1)[..., None]
    parts = [
        encoding["place"] * np.broadcast_to(table, (64, count, n)),
        encoding["bit"] * (sign if encoding["shared"] else sign * table),
        np.full((64, count, 1), encoding["constant"]),
        np.zeros((64, count, 1)),
    ]
    rows = np.concatenate(parts, -1)
    first = np.zeros((64, 1, rows.shape[-1]))
    first[..., -1] = 1.0
    rows = np.concatenate([first, rows], 1)
    scores = (rows[:, :1] @ arrays["W_Q[0]"][0]) @ (rows @ arrays["W_K[0]"][0]).transpose(0, 2, 1)
    masses = np.exp(scores - scores.max(-1, keepdims=True))
    out = masses / masses.sum(-1, keepdims=True) @ (rows @ arrays["W_V[0]"][0])

    def ball(x: np.ndarray) -> np.ndarray:
        return x / np.maximum(1.0, np.linalg.norm(x, axis=-1, keepdims=True))

    found = (ball(np.maximum(ball(out), 0) @ arrays["W_1[0]"]) @ arrays["readout"])[:, 0, 0]
    assert np.allclose(found, network.scores(bits), atol=1e-12)
    assert (np.sign(found) == 2 * function.values(bits) - 1).all()
    again = load(path)
    assert (again.scores(bits) == network.scores(bits)).all()
