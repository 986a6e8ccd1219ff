"""`boundcalc represent` and `boundcalc sparse`, as a person types them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from boundcalc.cli import main
from boundcalc.lab.represent.export import load


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="boundcalc")


def test_represent_shows_what_was_certified() -> None:
    outcome = run("represent", "x3 & ~x7 | x11", "--T", "512", "--attack", "2000")
    assert outcome.exit_code == 0, outcome.stderr
    for text in ("Certified: sign(f) F >= 1 on all 2^512 inputs", "general; s 3", "corners", "W_QK[0]", "Tried 2000"):
        assert text in outcome.stdout


def test_short_sequences_are_tried_in_full() -> None:
    outcome = run("represent", "MAJ(1, 5, 9)", "--T", "10", "--format", "json")
    data = json.loads(outcome.stdout)
    assert data["tried"]["all"]["inputs"] == 1024
    assert data["tried"]["all"]["least"] >= 1 - 1e-9
    assert data["certificate"]["margin"] >= 1
    assert data["structure"] == "monotone symmetric"
    assert data["support"] == [1, 5, 9]


def test_compact_positions_by_option() -> None:
    data = json.loads(run("represent", "x3 & ~x7 | x11", "--T", "2048", "--compact", "--format", "json").stdout)
    assert data["encoding"]["dimension"] == 128
    assert data["coherence"] == 0.125
    assert data["certificate"]["margin"] >= 1


def test_tables_and_named_constructions() -> None:
    outcome = run("represent", "--table", "01101001", "--reads", "2, x4, 8", "--T", "9", "--construction", "mean")
    assert outcome.exit_code == 0, outcome.stderr
    assert "mean; positions orthonormal" in outcome.stdout


def test_functions_of_functions_have_a_block_per_level(tmp_path: Path) -> None:
    words = ("represent", "--level", "x0 & x1; x5; x2 | x3", "--level", "x0 ^ x2", "--T", "10", "--attack", "300")
    target = tmp_path / "tower.npz"
    outcome = run(*words, "--out", str(target))
    assert outcome.exit_code == 0, outcome.stderr
    for text in (
        "Block 0  2 heads",
        "Block 1  1 head,",
        "Certified: sign(f) F >= 1 on all 2^10",
        "Tried 1024",
        "Tried 300",
    ):
        assert text in outcome.stdout
    data = json.loads(run(*words, "--format", "json").stdout)
    assert [len(level) for level in data["levels"]] == [2, 1]  # the function that nothing reads is left out
    assert data["tried"]["all"]["least"] >= 1 - 1e-9
    assert data["samples"]["m"] > 0
    bits = np.random.default_rng(0).integers(0, 2, (50, 10))
    truth = (bits[:, 0] & bits[:, 1]) ^ (bits[:, 2] | bits[:, 3])
    assert (load(target).scores(bits) * (2 * truth - 1)).min() >= 1 - 1e-9


def test_weights_are_written(tmp_path: Path) -> None:
    target = tmp_path / "xor.npz"
    outcome = run("represent", "x1 ^ x2", "--T", "8", "--out", str(target))
    assert outcome.exit_code == 0, outcome.stderr
    with np.load(target) as file:
        about = json.loads(str(file["represents"]))
        assert {"W_Q[0]", "W_K[0]", "W_V[0]", "W_1[0]", "readout", "architecture"} <= set(file.files)
    assert about["support"] == [1, 2]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("x3 &", "--T", "8"), "ends too early"),
        (("x3 & x9", "--T", "8"), "bit x9 is out of range: with T = 8 bits are x0 to x7; choose T of at least 10"),
        (("x3 | ~x3", "--T", "8"), "constant (1 for every input)"),
        ((" | ".join(f"x{i} & x{i + 1}" for i in range(0, 12, 2)), "--T", "20"), "s = 12 is too large"),
        ((" | ".join(f"x{i} & x{i + 1}" for i in range(0, 20, 2)), "--T", "20"), "at most 16 variables"),
        (("PARITY(0..1999)", "--T", "4096"), "at most s = 1024 is offered"),
        (("x3 & x4", "--T", "8", "--construction", "corners", "--table", "01"), "give an expression"),
        (("x3 & ~x4", "--T", "8", "--construction", "mean"), "does not fit"),
        (("x3", "--T", "8", "--reads", "1"), "--reads belongs to --table"),
        (("--T", "8"), "give an expression"),
        (("--table", "0110", "--reads", "1,b", "--T", "8"), "--reads is a list"),
        (("x3", "--T", "8", "--compact"), "no compact positions"),
        (("x3", "--T", "8", "--out", "weights.txt"), "*.safetensors or *.npz"),
        (("x3", "--T", "8", "--attack", "-1"), "--attack"),
        (("x3", "--T", "10000000"), "at most 2^20"),
        (("x3", "--level", "x0", "--T", "8"), "leave out the expression"),
        (("--level", "x0 & x1", "--T", "8"), "two levels or more"),
        (("--level", "x0 & x1", "--level", "x0 & x1", "--T", "8"), "reads 1 to 6 of the 1 before"),
        (("--level", "x0; x1", "--level", "x0 ^ x0", "--T", "8"), "constant"),
        (("--level", "x0; x9", "--level", "x0 ^ x1", "--T", "8"), "out of range"),
        (("--level", "x0; x1", "--level", "x0 ^ x1", "--T", "8", "--compact"), "--compact has no effect with --level"),
    ],
)
def test_errors_of_represent_are_one_line(words: tuple[str, ...], says: str) -> None:
    outcome = run("represent", *words)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert len(outcome.stderr.splitlines()) == 1
    assert says in outcome.stderr


def test_sparse_table_and_json_agree() -> None:
    words = ("sparse", "--s", "3", "--T", "512", "--target", "0.05", "--delta", "0.01")
    shown, data = run(*words).stdout, json.loads(run(*words, "--format", "json").stdout)
    assert f"Finite class: {data['finite_class']} samples" in shown
    assert f"fewer than {data['counting_floor']} labels" in shown
    assert data["finite_class"] == 528
    assert data["counting_floor"] == 24
    for name, row in data["policies"].items():
        assert name in shown
        assert row["risk"] <= 0.05 * (1 + 1e-9)
        assert row["kind"] == "bound"


def test_every_m_has_a_certificate_that_verify_takes(tmp_path: Path) -> None:
    words = (
        "sparse",
        "--s",
        "2",
        "--T",
        "32",
        "--bound",
        "best",
        "--bound",
        "log-T",
        "--certificates",
        str(tmp_path),
    )
    data = json.loads(run(*words, "--format", "json").stdout)
    for name, row in data["policies"].items():
        verified = json.loads(run("verify", str(tmp_path / f"any-s2-T32-{name}.json"), "--format", "json").stdout)
        assert verified["verified"]
        assert verified["value"] <= 0.05 * (1 + 1e-9)
        assert verified["setting"]["sample"]["n_train"] == row["m"]
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / "file").write_text("")
    wrong = run(*words[:-1], str(tmp_path / "file"))
    assert wrong.exit_code == 2
    assert len(wrong.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--s", "3"), "give --s and --T"),
        (("--s", "5", "--T", "4"), "cannot hide"),
        (("--s", "12", "--T", "64"), "s = 12 is too large for class 'any': norms and hidden units grow like 2^s"),
        (("--s", "3", "--T", "512", "--target", "2"), "risk must lie in (0, 1)"),
        (("--s", "3", "--T", "512", "--delta", "0"), "delta must lie in (0, 1)"),
        (("--s", "3", "--T", "512", "--bound", "bset"), "best"),
        (("--symbolic", "--s", "6", "--T", "8"), "2s <= T"),
        (("--growth", "--s", "6"), "leave out --s"),
        (("--growth", "--T", "8"), "T from 80 to"),
        (("--growth", "--certificates", "proofs"), "leave out --class"),
        (("--symbolic", "--class", "symmetric"), "leave out --class"),
        (("--symbolic", "--compact"), "leave out --class"),
    ],
)
def test_errors_of_sparse_are_one_line(words: tuple[str, ...], says: str) -> None:
    outcome = run("sparse", *words)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert len(outcome.stderr.splitlines()) == 1
    assert says in outcome.stderr


def test_symbolic_page() -> None:
    outcome = run("sparse", "--symbolic", "--s", "3", "--T", "512")
    assert outcome.exit_code == 0, outcome.stderr
    for text in ("log((T - s + 1)/s)", "4^s s^3 log^2(T/s) log(mT)", "At s = 3, T = 512"):
        assert text in outcome.stdout
    data = json.loads(run("sparse", "--symbolic", "--format", "json").stdout)
    assert data["m"] is None
    assert any(r"\log" in formula["latex"] for formula in data["formulas"])


def test_growth_is_reported() -> None:
    outcome = run("sparse", "--growth")
    assert outcome.exit_code == 0, outcome.stderr
    for text in ("any: times", "per bit", "threshold: s^", "more per e-fold of T"):
        assert text in outcome.stdout
    data = json.loads(run("sparse", "--growth", "--format", "json").stdout)
    assert f"any: times {data['base']['fitted']:.2f} per bit" in outcome.stdout
    assert data["products"]["any"]["8"] > data["products"]["symmetric"]["8"]


def test_sparse_does_not_import_sympy_or_torch() -> None:
    code = (
        "import sys; from boundcalc.cli import main\n"
        "try: main(['sparse', '--s', '2', '--T', '64', '--bound', 'best'])\n"
        "except SystemExit as e: assert e.code == 0\n"
        "assert not {'sympy', 'torch', 'matplotlib'} & set(sys.modules), 'imported too much'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_json_is_documented() -> None:
    """Every key of what the commands print as JSON stands in docs/representation.md."""
    page = (Path(__file__).parents[3] / "docs" / "representation.md").read_text().partition("## JSON")[2]
    for words in (
        ("represent", "x1 & x2", "--T", "8"),
        ("sparse", "--s", "2", "--T", "16"),
        ("sparse", "--symbolic"),
        ("sparse", "--growth"),
    ):
        for key in json.loads(run(*words, "--format", "json").stdout):
            assert f"`{key}`" in page, (words, key)
    assert "`no such key`" not in page


def test_functions_that_no_later_level_reads_are_told() -> None:
    """The others get other numbers: "x1" of the second level is shown as x0."""
    words = ("represent", "--level", "x0; x1 & x2", "--level", "x1", "--T", "8")
    assert "Left out, as no later level reads them: 1 of level 1" in run(*words).stdout
    assert json.loads(run(*words, "--format", "json").stdout)["left_out"] == [1, 0]
    assert "Left out" not in run("represent", "--level", "x0; x1 & x2", "--level", "x1 | x0", "--T", "8").stdout
