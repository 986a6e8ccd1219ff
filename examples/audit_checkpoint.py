"""Audit a checkpoint: build a small BERT from a config, save it, measure it, and bound it. Needs transformers.

    python examples/audit_checkpoint.py [DIRECTORY]

Nothing is downloaded. With a directory that already holds a checkpoint, that one is audited.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from boundcalc import Sample, Setting, compare, verify
from boundcalc.checkpoints import audit


def build(directory: Path) -> None:
    """A randomly initialised classifier, as save_pretrained writes it."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        vocab_size=1000,
        max_position_embeddings=64,
    )
    BertForSequenceClassification(config).save_pretrained(directory)


def main(directory: Path) -> None:
    if not (directory / "config.json").exists():
        build(directory)
    report = audit(directory)
    account = report.account
    print(f"{report.family}: {account.total:,} parameters, {account.used:,} in the bounded model")
    for line in account.lines:
        if line.unused:
            print(f"  {line.tensor}: {line.unused} unread, {line.reason}")
    top = max((m for key, m in report.measured.items() if key.startswith("W_QK")), key=lambda m: m.op or 0.0)
    print(f"largest score matrix: op {top.op:.4f}, F {top.fro:.4f}, (2,1) {top.two_one:.4f}")

    sample = Sample(n_train=10**8, margin=0.5, train_error=0.01, measured=("margin", "train_error"))
    for value in compare(Setting(report.architecture, report.norms(), sample), ["best", "published"]):
        verify(value.certificate)  # raises if any step does not follow
        if value.trivial:
            print(f"{value.name} ({value.kind}): trivial; m = {value.needed and value.needed.n_train} suffices")
            continue
        vacuous = " (vacuous)" if value.vacuous else ""
        kind, share = value.dominant or ("nothing", 0.0)
        print(f"{value.name} ({value.kind}): gap <= 10^{value.log10:.2f}{vacuous}, most from {kind} ({share:.0%})")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
