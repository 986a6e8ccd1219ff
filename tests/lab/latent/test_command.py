"""`boundcalc latent` as it is typed."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from boundcalc.base import project
from boundcalc.cli import main
from boundcalc.cli.latent_show import ceiling


def run(*words: str, code: int = 0) -> Result:
    outcome = CliRunner().invoke(main, ["latent", *words], prog_name="boundcalc")
    assert outcome.exit_code == code, (outcome.output, outcome.stderr)
    return outcome


def refused(*words: str, code: int = 2) -> str:
    outcome = run(*words, code=code)
    assert outcome.stdout == ""
    (line,) = outcome.stderr.splitlines()
    return line


def test_posteriors_print_and_say_that_they_were_checked() -> None:
    listing = run("posterior").stdout
    assert "beta-bernoulli" in listing
    assert "gaussian-linear" in listing
    assert "(a + s)/(L + a + b)" in run("posterior", "beta-bernoulli").stdout
    assert "checked: prior times likelihood" in run("posterior", "gaussian-linear").stdout
    assert (
        "3 sufficient statistics (sums, sorted, mean) give one posterior" in run("posterior", "beta-bernoulli").stdout
    )
    assert r"\frac{a + s}{L + a + b}" in run("posterior", "beta-bernoulli", "--latex").stdout
    assert "did you mean 'gaussian-mean'" in refused("posterior", "gausian-mean")


def test_sufficiency() -> None:
    found = json.loads(run("sufficient", "--L", "6", "--format", "json").stdout)
    assert found["posterior"] < 1e-12
    assert found["largest token"] > 1e-2
    assert "more than 2^18" in refused("sufficient", "--L", "40")
    estimated = json.loads(run("sufficient", "--L", "6", "--sequences", "1500", "--format", "json").stdout)
    for name, (_, low, high) in estimated.items():
        assert low <= max(found[name], 1e-9)
        assert found[name] <= high
    assert estimated["nothing"][1] > 0
    assert "not refuted" in run("sufficient", "--L", "30", "--sequences", "200").stdout
    for model in ("dirichlet-categorical", "categorical-mixture", "gaussian-mean"):
        other = json.loads(run("sufficient", "--model", model, "--L", "4", "--format", "json").stdout)
        assert min(other.values()) < 1e-12 < 1e-3 < other["nothing"]
    assert "--a has no effect on gaussian-mean" in refused("sufficient", "--model", "gaussian-mean", "--a", "3")
    assert "--sequences has no effect on gaussian-mean" in refused(
        "sufficient", "--model", "gaussian-mean", "--sequences", "99"
    )


def test_extendibility_of_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    urns = np.array([rng.permutation([1, 1, 0, 0])[:3] for _ in range(2000)])
    np.save(tmp_path / "urns.npy", urns)
    assert "extend to at most 4 exchangeable tokens" in run("extendible", str(tmp_path / "urns.npy")).stdout
    coins = (rng.random((500, 4)) < rng.random((500, 1))).astype(int)
    np.savetxt(tmp_path / "coins.csv", coins, delimiter=",")
    assert "nothing speaks against" in run("extendible", str(tmp_path / "coins.csv")).stdout
    (tmp_path / "words.csv").write_text("a,b\n")
    assert "not an array of numbers" in refused("extendible", str(tmp_path / "words.csv"))
    (tmp_path / "empty.csv").write_text("\n")
    assert "is empty" in refused("extendible", str(tmp_path / "empty.csv"))
    for delta in ("0", "2", "nan"):
        assert "delta must lie in (0, 1)" in refused("extendible", str(tmp_path / "coins.csv"), "--delta", delta)


def test_what_is_no_array_of_finite_real_numbers_is_refused(tmp_path: Path) -> None:
    """One number that is missing made every correlation nan, which was then said to be negative."""
    whole = np.random.default_rng(0).integers(0, 2, (12, 3)).astype(float)
    whole[3, 1] = np.nan
    np.savetxt(tmp_path / "nan.csv", whole, delimiter=",")
    np.save(tmp_path / "complex.npy", whole * 1j)
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    (tmp_path / "empty.npy").touch()
    for name, says in (
        ("nan.csv", "finite"),
        ("complex.npy", "real"),
        ("words.npy", "real"),
        ("empty.npy", "not an array"),
    ):
        for command in ("extendible", "attend"):
            assert says in refused(command, str(tmp_path / name))


def test_extendibility_of_a_law() -> None:
    urn = run("extendible", "--ones", "0,1,0").stdout
    assert "2 bits that extend to at most 2 exchangeable ones" in urn
    assert "at most 0.5000, by X1 at most 0.5000" in urn
    far = run(
        "extendible", "--ones", "0.24987493746873435,0.5002501250625312,0.24987493746873435"
    ).stdout  # an urn of 2000
    assert "extend to 512 exchangeable ones or more, but not to any number" in far
    assert "extend to any number" in run("extendible", "--ones", "0.25,0.5,0.25").stdout
    assert "sum to 1" in refused("extendible", "--ones", "0,1,1")
    assert "--delta has no effect on a law" in refused("extendible", "--ones", "0,1,0", "--delta", "0.1")
    assert "give a file of sequences, or --ones" in refused("extendible")


def test_attention_over_pairs_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    keys = rng.uniform(-1, 1, (30, 1))
    np.savetxt(tmp_path / "pairs.csv", np.hstack([keys, np.sin(3 * keys), np.cos(3 * keys)]), delimiter=",")
    np.save(tmp_path / "asked.npy", np.array([[0.2], [-0.4]]))
    words = ("attend", str(tmp_path / "pairs.csv"), "--values", "2", "--queries", str(tmp_path / "asked.npy"))
    words += ("--kernel", "rbf", "--set", "width=0.5", "--ridge", "1e-3", "--temperature", "0.05,1")
    found = json.loads(run(*words, "--value-noise", "0.1", "--rkhs-norm", "3", "--format", "json").stdout)
    assert [row["attention"] for row in found[:4]] == ["CME", "softmax tau=0.05", "softmax tau=1", "linear"]
    assert len(found) == 8
    assert found[0]["value 1"] == pytest.approx(np.sin(0.6), abs=0.01)
    assert found[4]["value 2"] == pytest.approx(np.cos(1.2), abs=0.01)
    assert 0 < found[0]["deviation"] < 0.1
    for row in found:
        assert row["X3k"] == pytest.approx(0.1 * row["|alpha|"] * (2 * np.log(2 / 0.05)) ** 0.5 + 3 * row["P(q)"])
    plain = run(*words).stdout
    assert "X3k: the error" not in plain
    assert json.loads(run(*words, "--format", "json").stdout)[0]["X3k"] is None
    assert "needs both --value-noise and --rkhs-norm" in refused(*words, "--rkhs-norm", "3")
    assert "--delta has no effect without --rkhs-norm" in refused(*words, "--delta", "0.1")
    small = refused(*words, "--value-noise", "0", "--rkhs-norm", "0.1")
    assert "X3k speaks of no law here" in small
    assert "got --rkhs-norm 0.1; raise one of the two" in small
    assert "beyond the largest float" in refused(*words, "--value-noise", "1e308", "--rkhs-norm", "1e308")
    assert "seed must lie between 0" in refused(*words[:6], "--kernel", "random-rbf", "--set", "seed=-1")
    assert "random feature pairs must lie" in refused(*words[:6], "--kernel", "random-rbf", "--set", "pairs=1e9")
    assert "no parameter 'degree'; it has width" in refused(*words, "--set", "degree=2")
    assert "and then a value of --values 3" in refused("attend", str(tmp_path / "pairs.csv"), "--values", "3")
    assert "queries of width 1 do not fit keys of width 2" in refused(*words[:2], *words[4:])


def test_bounds() -> None:
    found = json.loads(run("bound", "--L", "512", "--sphere", "4", "--m", "1e6", "--format", "json").stdout)
    values = {(one["name"], one["form"]): one["value"] for one in found}
    assert values["X3", "sharp"] < values["X3", "published"]
    assert values["X4", "uniform sphere"] < values["X4", "any keys"] < values["X4", "plain"]
    assert 0 < values["X5", "gap"] < 1
    assert {one["kind"] for one in found} == {"bound"}
    near = json.loads(run("bound", "--L", "1e6", "--sphere", "3", "--mean-lipschitz", "1", "--format", "json").stdout)
    (best,) = (one for one in near if one["form"] == "conditional mean")
    assert best["parameters"]["bias"] < best["value"] < 2
    assert "--mean-lipschitz has no effect without --sphere" in refused("bound", "--mean-lipschitz", "1")
    line = run("bound", "--pretext", "1,0;0,0.1", "--downstream", "1,1").stdout
    assert "kappa 10" in line
    assert "any head" in run("bound", "--pretext", "1,0;0,0", "--downstream", "1,1", "--spread", "1").stdout


def test_bounds_that_say_nothing_are_called_so() -> None:
    text = run("bound", "--m", "1", "--temperature", "1e-300").stdout
    assert "X5 (gap) says nothing here: its quantity is at most 1 anyway" in text
    assert "X4 (plain) says nothing here: its quantity is at most 2 anyway" in text
    assert "says nothing" not in run("bound", "--m", "1e6").stdout
    rows = json.loads(run("bound", "--m", "1", "--format", "json").stdout)
    assert [row["name"] for row in rows if row["says_nothing"]] == ["X5"]
    for words in (
        ("eval", "--bound", "X4", "--set", "tau=1e-3"),
        ("solve", "--bound", "X4", "--for", "L", "--target", "2"),
    ):
        outcome = CliRunner().invoke(main, list(words))
        assert "at most 2 anyway" in outcome.output
        assert outcome.exit_code == (2 if words[0] == "solve" else 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bound", "--L", "0"), "L must lie between 1"),
        (("infer", "--seed", "-1"), "seed must lie between 0"),
        (("infer", "--temperature", "1e-9"), "at least 0.002"),
        (("transfer", "--seed", "-1"), "seed must lie between 0"),
        (("sufficient", "--sequences", "30", "--seed", "-1"), "seed must lie between 0"),
        (("posterior", "--latex"), "--latex has no effect without a model"),
        (("bound", "--temperature", "-1"), "temperature tau must be finite and above 0"),
        (("bound", "--smoothness", "2"), "1/2 < r <= 3/2"),
        (("bound", "--pretext", "1,0;0,0", "--downstream", "1,1"), "kappa = |w M^+| is infinite"),
        (("bound", "--pretext", "1,0"), "needs both"),
        (("bound", "--pretext", "1,0;1", "--downstream", "1,1"), "equally long"),
        (("bound", "--pretext", "1,0;x,1", "--downstream", "1,1"), "got 'x'"),
        (("infer", "--L", "64:8"), "a range is like 8:65536"),
        (("infer", "--L", "8,x"), "needs a whole number"),
        (("infer", "--temperature", ""), "at least one number"),
        (("infer", "--repetitions", "1"), "repetitions must lie between 10"),
        (("transfer", "--diversity", "2"), "diversity must lie in [0, 1]"),
    ],
)
def test_bad_lines_get_one_line_back(words: tuple[str, ...], message: str) -> None:
    assert message in refused(*words)


def test_experiments_print_tables_csv_and_json() -> None:
    short = ("infer", "--L", "8:128", "--repetitions", "30", "--temperature", "0.5")
    table = run(*short).stdout
    assert "CME, posterior mean" in table
    assert "nearest to the conditional mean" in table
    rows = list(csv.DictReader(io.StringIO(run(*short, "--format", "csv").stdout)))
    assert len(rows) == 5 * 4
    assert {row["L"] for row in rows} == {"8", "16", "32", "64", "128"}
    document = json.loads(run(*short, "--format", "json").stdout)
    assert document["plan"]["repetitions"] == 30
    small = ("transfer", "--diversity", "1,0.1,0", "--repetitions", "3")
    assert "kappa = |w M^+| is infinite" in " ".join(run(*small).stdout.split())
    found = json.loads(run(*small, "--format", "json").stdout)
    assert [row["kappa"] is None for row in found] == [False, False, True]


def test_learning_runs_once_and_is_remembered(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = ("learn", "--L", "4,8,16", "--m", "32", "--seeds", "2", "--steps", "20", "--kind", "masked", "--quiet")
    first = run(*words, "--store", str(tmp_path / "runs.db"), "--format", "json").stdout
    again = run(*words, "--store", str(tmp_path / "runs.db"), "--format", "json").stdout
    assert first == again
    document = json.loads(first)
    assert [row["length"] for row in document["rows"]] == [4, 8, 16]
    assert len({row["x5"] for row in document["rows"]}) == 1
    assert document["slopes"][0]["kind"] == "masked"


def test_trained_experiments_print_what_they_count() -> None:
    pytest.importorskip("torch")
    small = ("desired", "--L", "2", "--m", "30", "--seeds", "2", "--steps", "5")
    document = json.loads(run(*small, "--format", "json").stdout)
    page = (Path(__file__).parents[3] / "docs" / "latent.md").read_text().partition("## JSON")[2]
    assert document["rows"][0]["members"] == 2
    assert "where X5 is above 1 it says nothing" in " ".join(run(*small).stdout.split())
    words = (
        "pretrain",
        "--L",
        "2",
        "--blur",
        "0,0.3",
        "--seeds",
        "2",
        "--V",
        "4",
        "--steps",
        "2",
        "--draws",
        "2",
        "--n-test",
        "100",
    )
    other = json.loads(run(*words, "--format", "json").stdout)
    assert [row["kappa"] for row in other["rows"]] == pytest.approx([1, 2.5])
    assert "of 8 draws the limit fell short" in " ".join(run(*words).stdout.split())
    for key in (*document["rows"][0], *other["rows"][0]):
        assert key in page, key


def test_learning_without_torch_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': raise ModuleNotFoundError('No module named torch', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from boundcalc.cli import main\n"
        f"main(['latent', 'learn', '--quiet', '--store', {str(tmp_path / 'runs.db')!r}], prog_name='boundcalc')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert project.install("train") in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_extreme_questions_are_answered_in_every_format() -> None:
    """Where nothing is chosen, as no tilt helps at this temperature, no NaN is printed; 2 is printed as it is."""
    words = ("bound", "--L", "1", "--temperature", "1e-4", "--sphere", "3", "--m", "1", "--reg", "1e-300")
    found = json.loads(run(*words, "--format", "json").stdout)
    assert [one["value"] for one in found if one["name"] == "X4"] == [2.0, 2.0, 2.0]
    shown = run(*words).stdout
    assert "nan" not in shown
    assert "X4      any keys         bound   2.000 " in shown


@pytest.mark.parametrize("x", [2.0, 0.1, 0.12341, 0.12345678, 99995.0, 1e-300, 3.00000001e200])
def test_bounds_are_rounded_up(x: float) -> None:
    assert x <= float(ceiling(x) or 0) <= x * 1.001
    assert float(ceiling(2.0) or 0) == 2.0


def test_json_is_documented() -> None:
    """Every key of what the commands print as JSON stands in docs/latent.md."""
    page = (Path(__file__).parents[3] / "docs" / "latent.md").read_text().partition("## JSON")[2]
    small = {
        "infer": ("infer", "--L", "8,16", "--repetitions", "10", "--temperature", "1"),
        "transfer": ("transfer", "--diversity", "1", "--repetitions", "3"),
        "bound": ("bound",),
    }
    for words in small.values():
        found = json.loads(run(*words, "--format", "json").stdout)
        for key in found if isinstance(found, dict) else found[0]:
            assert f"`{key}`" in page, (words, key)
    assert "`no such key`" not in page
