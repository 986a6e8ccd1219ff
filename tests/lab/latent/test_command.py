"""`boundcalc latent` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from boundcalc.cli import main


def run(*words: str, code: int = 0) -> Result:
    outcome = CliRunner().invoke(main, ["latent", *words], prog_name="boundcalc")
    assert outcome.exit_code == code, (outcome.output, outcome.stderr)
    return outcome


def refused(*words: str, code: int = 2) -> str:
    outcome = run(*words, code=code)
    assert outcome.stdout == ""
    (line,) = outcome.stderr.splitlines()
    return line


def test_attention_over_pairs_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    keys = rng.uniform(-1, 1, (30, 1))
    np.savetxt(tmp_path / "pairs.csv", np.hstack([keys, np.sin(3 * keys)]), delimiter=",")
    np.save(tmp_path / "keys.npy", keys)
    np.save(tmp_path / "asked.npy", np.array([[0.2], [-0.4]]))
    words = (str(tmp_path / "pairs.csv"), "--queries", str(tmp_path / "asked.npy"))
    words += ("--kernel", "rbf", "--set", "width=0.5", "--ridge", "1e-3", "--temperature", "0.05")
    found = json.loads(run(*words, "--value-noise", "0.1", "--rkhs-norm", "3", "--format", "json").stdout)
    assert [row["attention"] for row in found[:3]] == ["CME", "softmax tau=0.05", "linear"]
    assert len(found) == 6
    assert found[0]["value"] == pytest.approx(np.sin(0.6), abs=0.01)
    assert found[3]["value"] == pytest.approx(-np.sin(1.2), abs=0.01)
    assert 0 < found[0]["deviation"] < 0.1
    for row in found:
        assert row["X3k"] == pytest.approx(0.1 * row["|alpha|"] * (2 * np.log(2 / 0.05)) ** 0.5 + 3 * row["P(q)"])
    plain = run(*words).stdout
    assert "X3k: the error" not in plain
    assert json.loads(run(*words, "--format", "json").stdout)[0]["X3k"] is None
    assert "needs both --value-noise and --rkhs-norm" in refused(*words, "--rkhs-norm", "3")
    assert "--delta has no effect without --rkhs-norm" in refused(*words, "--delta", "0.1")
    assert "X3k is infinite" in refused(*words, "--value-noise", "1e308", "--rkhs-norm", "1e308")
    assert "no 'degree'; it knows width" in refused(*words, "--set", "degree=2")
    assert "a row needs a key" in refused(str(tmp_path / "keys.npy"))
    assert "queries of width 2 do not fit keys of width 1" in refused(*words[:2], str(tmp_path / "pairs.csv"))
