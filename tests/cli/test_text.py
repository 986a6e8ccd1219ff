"""Tables and paragraphs on terminals of any width."""

from __future__ import annotations

import click
import pytest

from boundcalc.cli.text import Line, wrapped, write_table

from .conftest import Run

HEADINGS = ("name", "first", "second", "third")
LINES = [Line(("a", "1", "22", "333"), "bold"), Line(("bb", "4444", "5")), Line(("c", "6", "7", "8"), "dim")]


def test_columns_align(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(HEADINGS, LINES, right=frozenset({1}))
    head, rule, first, second, _ = (click.unstyle(line) for line in capsys.readouterr().out.splitlines())
    assert first.index("1") == head.index("first") + 4
    assert second.index("4444") == head.index("first") + 1
    assert first.index("333") == head.index("third")
    assert set(rule) == {"-"}


def test_no_cell_is_cut_and_styles_are_for_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(HEADINGS, LINES)
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    assert {*HEADINGS, "a", "bb", "c", "1", "22", "333", "4444", "5", "6", "7", "8"} <= set(plain.split())
    monkeypatch.setattr(click, "echo", print)  # click would strip styles where there is no terminal
    write_table(HEADINGS, LINES)
    styled = capsys.readouterr().out
    assert "\x1b[1m" in styled
    assert click.unstyle(styled) == plain


def test_paragraphs_keep_every_word_and_the_width() -> None:
    words = [f"word{i}" for i in range(40)]
    lines = wrapped(words, first="Title  ", width=30)
    assert max(map(len, lines)) <= 30
    assert lines[0].startswith("Title  word0")
    assert all(line.startswith("       ") for line in lines[1:])
    assert " ".join(lines).split() == ["Title", *words]


def test_what_certificates_of_one_predictor_rest_on_is_explained(run: Run) -> None:
    """`verify` names these statements; `list` and `explain` know them all."""
    from boundcalc.predictors.statements import STATEMENTS

    listed = run("list", "--format", "json").stdout
    for name, statement in STATEMENTS.items():
        assert f'"{name}"' in listed
        text = run("explain", name).stdout
        assert all(fact.meaning.split(",")[0].split()[0] in text for fact in statement.facts.values())
        assert "Statement" in text
        assert "Facts" in text
    assert "docs/certificates.md" in run("explain", "H").stdout


def test_bars_are_as_long_as_shares() -> None:
    from boundcalc.cli.text import bar

    assert [bar(x) for x in (0.0, 0.1, 0.25, 1.0)] == ["", "█", "██▌", "█" * 10]
    lengths = [len(bar(i / 200)) for i in range(201)]
    assert lengths == sorted(lengths)
    assert bar(1.5) == bar(1.0)
    assert bar(-1.0) == ""
