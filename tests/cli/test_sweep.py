"""`--sweep`: axes are read as written, every point is what `eval` says there, absurd grids are refused."""

from __future__ import annotations

import csv
import io
import json

import pytest

from boundcalc.cli.axes import parse_axes

from .conftest import Run, one_line


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("T=64:1024:x2", [64, 128, 256, 512, 1024]),
        ("T=64:1000:x2", [64, 128, 256, 512]),
        ("T=1024:64:x0.5", [1024, 512, 256, 128, 64]),
        ("T=7:7:x2", [7]),
        ("m=1e3:1e9:log7", [10**k for k in range(3, 10)]),
        ("m=1:3:log9", [1, 2, 3]),
        ("C=0.5:2:lin4", [0.5, 1.0, 1.5, 2.0]),
        ("C=2:0.5:lin4", [2.0, 1.5, 1.0, 0.5]),
        ("gamma=0.1:0.1:log1", [0.1]),
        ("heads=1,2,4", [1, 2, 4]),
        ("train-error=0,10^-2", [0.0, 0.01]),
        ("activation=relu,gelu", ["relu", "gelu"]),
        ("causal=yes,no", [True, False]),
        ("--depth=1,2", [1, 2]),
    ],
)
def test_axes_are_read_as_written(text: str, values: list[object]) -> None:
    ((_, found),) = parse_axes([text]).values()
    assert found == pytest.approx(values) if isinstance(values[0], float) else found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_geometric_ranges_keep_their_last_point_despite_rounding() -> None:
    for count in range(2, 34):
        ((_, found),) = parse_axes([f"m=1:{3**count}:x3"]).values()
        assert found == [3**k for k in range(count + 1)]


ABSURD = [
    (["m"], "NAME=VALUES"),
    (["m="], "NAME=VALUES"),
    (["n=1,2"], "no sweep axis 'n'"),
    (["gama=1,2"], "did you mean 'gamma'"),
    (["m=1:10"], "first:last:STEP"),
    (["m=1:10:20:x2"], "first:last:STEP"),
    (["m=1:10:2"], "STEP is x2 (a factor), log7 or lin4"),
    (["m=1:10:y2"], "STEP is x2"),
    (["m=1:nan:x2"], "'nan' is no finite number"),
    (["m=1:1e400:x2"], "no finite number"),
    (["m=a,b"], "'a' is no finite number"),
    (["m=1,,2"], "'' is no finite number"),
    (["m=100:1:x2"], "the factor must be between 0 and 1, got x2"),
    (["m=1:100:x0.5"], "the factor must be above 1"),
    (["m=1:100:x1"], "the factor must be above 1"),
    (["m=1:100:x-2"], "the factor must be above 1"),
    (["m=0:100:x2"], "ends above 0"),
    (["C=-1:1:log3"], "ends above 0"),
    (["m=1:1e9:lin1"], "2 to 10^6 points"),
    (["m=1:1e9:lin0"], "2 to 10^6 points"),
    (["m=1:1e9:log2.5"], "2 to 10^6 points"),
    (["m=1:1e9:lin1e7"], "2 to 10^6 points"),
    (["m=1:1e9:x1.000001"], "take a larger factor"),
    (["m=1e6:1e15:log1000", "T=1e6:1e15:log1001"], "a sweep may have 10^6 points, got 1001000"),
    (["m=1,2", "m=3"], "given twice"),
    (["depth=1.5"], "depth must be a whole number"),
    (["causal=maybe"], "causal is yes or no"),
    (["delta=0.1,2"], "delta must lie in (0, 1), got 2.0"),
    (["m=0,1"], "m must lie"),
    (["m=1:1e6:lin5000"], "add --format csv"),
]


@pytest.mark.parametrize(("axes", "needle"), ABSURD, ids=[" ".join(axes) for axes, _ in ABSURD])
def test_absurd_sweeps_are_refused_in_one_line(run: Run, axes: list[str], needle: str) -> None:
    outcome = run("eval", *(word for axis in axes for word in ("--sweep", axis)))
    assert outcome.exit_code == 2
    assert needle in one_line(outcome)


@pytest.mark.parametrize("option", [["--certificate", "x.json"], ["--certificate-risk", "x.json"], ["--explain"]])
def test_what_is_about_one_setting_excludes_sweeps(run: Run, option: list[str]) -> None:
    outcome = run("eval", "--sweep", "T=8,16", *option)
    assert outcome.exit_code == 2
    assert option[0] in one_line(outcome)


def test_every_point_is_what_eval_says_there(run: Run) -> None:
    line = ("--depth", "1", "--bound", "closed", "--bound", "trauger")
    sweep = run("eval", *line, "--sweep", "T=8,32", "--sweep", "C=1,2", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(sweep.stdout)))
    assert [(row["T"], row["C"]) for row in rows[::2]] == [("8", "1.0"), ("8", "2.0"), ("32", "1.0"), ("32", "2.0")]
    for row in rows:
        one = run("eval", *line[:2], "--bound", row["name"], "--T", row["T"], "--C", row["C"], "--format", "json")
        (result,) = json.loads(one.stdout)["results"]
        assert float(row["log10_gap"]) == result["log10_gap"]
        assert float(row["log10_risk"]) == result["log10_risk"]


def test_json_sweeps_carry_their_points(run: Run) -> None:
    outcome = run(
        "eval",
        "--sweep",
        "temperature=1,2",
        "--sweep",
        "T=8,16",
        "--bound",
        "log-T",
        "--m",
        "1e9",
        "--format",
        "json",
    )
    document = json.loads(outcome.stdout)
    assert document["axes"] == {"temperature": [1.0, 2.0], "T": [8, 16]}
    assert [row["at"] for row in document["results"]] == [
        {"temperature": t, "T": T} for t in (1.0, 2.0) for T in (8, 16)
    ]
    gaps = [row["log10_gap"] for row in document["results"]]
    assert gaps[2] < gaps[0]  # a higher temperature makes flatter, less sensitive attention


def test_points_that_make_no_setting_are_rows(run: Run) -> None:
    outcome = run("eval", "--sweep", "heads=1,3", "--format", "csv")
    assert outcome.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(outcome.stdout)))
    assert rows[0]["refusal"] == ""
    assert "not divisible" in rows[1]["refusal"]
    assert rows[1]["gap"] == ""
    assert run("eval", "--sweep", "heads=3,5").exit_code == 1


def test_tables_show_only_what_is_shared(run: Run) -> None:
    text = run("eval", "--sweep", "T=8,16", "--sweep", "train-error=0,0.1").stdout
    head, table = text.split("gap <=")
    assert "T 512" not in head
    assert "train error" not in head
    assert "depth 2*" in head
    assert table.count("\n") >= 4


def test_a_sweep_of_the_knob_beside_norms_of_some_weights(run: Run) -> None:
    """The knob that the other weights need is what is swept; where none needs it, or none gives it, that is said."""
    some = ("eval", "--depth", "1", "--bound", "best", "--norm", "W_V=op:2,21:2")
    found = run(*some, "--sweep", "C=1,2", "--format", "csv")
    assert found.exit_code == 0, found.stderr
    assert len(found.stdout.splitlines()) == 3
    assert "no norm budget for" in one_line(run(*some, "--sweep", "m=1e6,1e7"))
    every = (word for kind in ("W_QK", "W_1", "readout") for word in ("--norm", f"{kind}=op:1,21:1"))
    assert "sweeping C would change nothing" in one_line(run(*some, *every, "--sweep", "C=1,2"))
