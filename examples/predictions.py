"""Write examples/predictions.csv: answers of a logistic regression to half of scikit-learn's digits.

python examples/predictions.py
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

OUT = Path(__file__).with_suffix(".csv")


def main() -> tuple[float, float]:
    """Upper limit of the error probability (S1), and the share of wrong answers."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    import boundcalc

    digits: Any = load_digits()
    fit, test = slice(0, 900), slice(900, None)
    model = LogisticRegression(max_iter=5000).fit(digits.data[fit] / 16, digits.target[fit])
    answers, labels = model.predict(digits.data[test] / 16), digits.target[test]
    with OUT.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("answer", "label"), *zip(answers, labels, strict=True)])
    risk = boundcalc.certify(OUT).lines[0].risk
    if risk is None:
        raise ValueError("no test answers")
    return risk, float((answers != labels).mean())


if __name__ == "__main__":
    limit, share = main()
    print(f"error at most {limit:.4f} with probability 0.95; {share:.4f} of these answers are wrong")
