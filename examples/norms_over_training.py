"""How norms, distances and bounds move during training: each checkpoint audited against the first. Needs torch.

    python examples/norms_over_training.py [FIGURE.png]

A small Transformer encoder learns whether a sequence's first two rows point the same way.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

from boundcalc import Sample, Setting, evaluate
from boundcalc.checkpoints import Audit, Options, audit
from boundcalc.checkpoints.describe import describe
from boundcalc.checkpoints.readers import open_checkpoint

T, D, STEPS, EVERY = 8, 16, 200, 40


def train() -> list[Any]:
    """The model before, during and after training."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(D, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.readout = nn.Linear(D, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.readout(self.encoder(x)[:, 0]).squeeze(-1)

    model = Classifier()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    models: list[Any] = []
    for step in range(STEPS + 1):
        if step % EVERY == 0:
            models.append(copy.deepcopy(model))
        x = nn.functional.normalize(torch.randn(64, T, D), dim=-1)
        y = torch.sign((x[:, 0] * x[:, 1]).sum(-1))
        loss = nn.functional.softplus(-y * model(x)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return models


def look(models: list[Any]) -> list[tuple[str, Audit, float | None]]:
    """Norms of every checkpoint, its distance from the first, and the bound that rests on both."""
    options = Options(seq_len=T, input_radius=1.0)
    mapping, _ = describe(models[0], open_checkpoint(models[0]), heads=2)  # held against its forward pass
    rows: list[tuple[str, Audit, float | None]] = []
    for index, model in enumerate(models):
        found = audit(model, mapping=mapping, options=options, reference=models[0])
        value = evaluate(Setting(found.architecture, found.norms(), Sample(n_train=10**9)), "best")
        rows.append((f"step {EVERY * index}", found, None if value.trivial else value.log10))
    return rows


def main(figure: Path | None) -> None:
    rows = look(train())
    kinds = ("W_QK[0,0]", "W_V[0,0]", "W_1[0]", "readout")
    print("checkpoint   " + "".join(f"{kind:>20}" for kind in kinds) + "      log10 gap")
    for name, found, log10 in rows:
        cells = [f"{found.measured[k].op or 0:8.3f} (+-{found.distances[k].fro or 0:6.3f})" for k in kinds]
        print(
            f"{name:13}"
            + "".join(f"{cell:>20}" for cell in cells)
            + ("        trivial" if log10 is None else f"{log10:15.2f}")
        )
    print("op norm, and the Frobenius distance from the first checkpoint in brackets; the bound uses both")
    if figure is not None:
        from matplotlib.figure import Figure

        drawing = Figure(figsize=(6, 3.5), layout="constrained")
        axes = drawing.subplots()
        for kind in kinds:
            axes.plot(
                [EVERY * i for i in range(len(rows))], [f.measured[kind].op or 0.0 for _, f, _ in rows], label=kind
            )
        axes.set(xlabel="step", ylabel="spectral norm (upper bound)")
        axes.legend()
        drawing.savefig(figure, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
