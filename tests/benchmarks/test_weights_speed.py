"""Speed and memory of audits, as ratios within one run: pytest tests/benchmarks/test_weights_speed.py -s

Needs torch, transformers and weightwatcher; one BLAS thread everywhere; processor time, so that other users of the
machine count less. The large checkpoint is scaled to the free disk.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc.checkpoints import audit
from boundcalc.norms.matrix import as_stored, measure
from tests.benchmarks.timing import least

pytestmark = [pytest.mark.benchmark, pytest.mark.filterwarnings("ignore")]
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def cost(action: Callable[[], Any], times: int = 1) -> float:
    """Least processor time of some runs."""
    return least(action, rounds=times, clock=time.process_time)[0]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """BERT base and GPT-2 small in size, saved and live."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("weightwatcher")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hf = pytest.importorskip("transformers")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    out: dict[str, tuple[Path, Any]] = {}
    for name, model in (("bert", hf.BertModel(hf.BertConfig())), ("gpt2", hf.GPT2Model(hf.GPT2Config()))):
        path = tmp_path_factory.mktemp(name)
        model.save_pretrained(path)
        out[name] = path, model
    return out


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_an_audit_against_weightwatcher(name: str, models: dict[str, tuple[Path, Any]]) -> None:
    """WeightWatcher's analyze splits no heads and has no 21 norms; both have all singular values here."""
    import weightwatcher

    path, model = models[name]
    ours = cost(lambda: audit(path), times=3)
    theirs = cost(lambda: weightwatcher.WeightWatcher(model=model).analyze(plot=False), times=2)
    print(f"\n{name}: audit {ours:.2f} s, WeightWatcher {theirs:.2f} s, ratio {theirs / ours:.1f}")
    assert theirs > 3 * ours


def test_one_wide_matrix_against_its_singular_values() -> None:
    w = np.random.default_rng(0).standard_normal((4096, 4096)).astype(np.float32)
    from boundcalc.norms import _spectral as spectral
    from boundcalc.norms.rounding import up

    square = up(float(np.einsum("ij,ij->", w, w, dtype=np.float64)), w.size)
    matrix = as_stored(w)
    found: list[float] = []

    def certified() -> None:
        found.append(spectral.chebyshev_upper(matrix.slabs, 4096, square, np.random.default_rng(len(found))))

    ours = cost(certified, times=3)
    singular: list[Any] = []
    wide = w.astype(np.float64)
    theirs = cost(lambda: singular.append(np.linalg.svd(wide, compute_uv=False)))
    top = float(singular[0][0])
    over = max(found) / top - 1
    print(f"\n4096: certified {ours:.2f} s (+{over:.2%}), singular values {theirs:.2f} s, ratio {theirs / ours:.1f}")
    assert all(top <= value <= 1.03 * top for value in found)
    assert theirs > 20 * ours
    whole = cost(lambda: measure(matrix, np.random.default_rng(0)))
    print(f"4096: all norms {whole:.2f} s, ratio {theirs / whole:.1f}")


MEMORY = """
import json, re, sys
import numpy, scipy.linalg.blas, scipy.linalg.lapack
from boundcalc.checkpoints import audit
def memory(what):
    return int(re.search(what + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
before = memory("VmRSS")
found = audit(sys.argv[1])
print(json.dumps({"mib": memory("VmHWM") - before, "parameters": found.account.total}))
"""


def audited(path: Path) -> dict[str, float]:
    """MiB above the interpreter with its libraries, and how many parameters were read."""
    environment = dict(os.environ) | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    out = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(out.stdout)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_memory_of_an_audit(name: str, models: dict[str, tuple[Path, Any]]) -> None:
    path, model = models[name]
    largest = max(p.numel() * p.element_size() for p in model.parameters()) / 2**20
    used = audited(path)["mib"]
    print(f"\n{name}: {used:.0f} MiB, largest tensor {largest:.0f} MiB")
    assert used <= 1.5 * largest + 300


@pytest.mark.slow
def test_a_large_checkpoint_streams(tmp_path: Path) -> None:
    """Of the shape of a Llama 7B with fewer blocks, in bfloat16."""
    torch, hf = pytest.importorskip("torch"), pytest.importorskip("transformers")
    free = shutil.disk_usage(tmp_path).free
    blocks = int(max(1, min(int(os.environ.get("BOUNDCALC_BLOCKS", "2")), (free // 2 - 600_000_000) // 410_000_000)))
    model = hf.AutoModelForCausalLM.from_config(hf.LlamaConfig(num_hidden_layers=blocks), dtype=torch.bfloat16)
    model.save_pretrained(tmp_path, max_shard_size="1GB")
    largest = max(p.numel() * p.element_size() for p in model.parameters()) / 2**20
    start = time.monotonic()
    report = audited(tmp_path)
    print(
        f"\n{report['parameters'] / 1e9:.2f} 10^9 parameters, {blocks} blocks, largest tensor {largest:.0f} MiB: "
        f"{report['mib']:.0f} MiB above the interpreter, {time.monotonic() - start:.0f} s"
    )
    assert report["mib"] <= 1.5 * largest + 300
