"""Transfer: what the diversity of pretext tasks is worth downstream, beside X6.

python examples/latent_transfer.py [tiny]
"""

from __future__ import annotations

import sys

from boundcalc.base.errors import Unsupported
from boundcalc.lab.latent.experiments.transfer import TransferPlan, transfer
from boundcalc.lab.latent.transfer import condition

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""


def main(scale: str = "full") -> tuple[Values, Values]:
    """X6, and the measured downstream error of the head it is about, by the condition number."""
    rows = transfer(TransferPlan(repetitions=4 if scale == "tiny" else 50))
    bounded = [row for row in rows if row.bound is not None and row.induced is not None]
    predicted = {row.kappa: row.bound for row in bounded if row.bound is not None}
    return predicted, {row.kappa: row.induced.value for row in bounded if row.induced is not None}


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for kappa, value in predicted.items():
        print(f"kappa = {kappa:7.2f}: downstream error {measured[kappa]:.4g}, X6 {value:.4g}")
    try:
        condition([[1.0, 0.0], [0.0, 0.0]], [1.0, 1.0])
    except Unsupported as error:
        print(error)
