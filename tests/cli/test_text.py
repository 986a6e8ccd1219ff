"""Tables and paragraphs on terminals of any width."""

from __future__ import annotations

import click
import pytest

from boundcalc.cli import text
from boundcalc.cli.text import Line, prose, wrapped, write_table

from .conftest import Run

HEADINGS = ("name", "first", "second", "third")
LINES = [Line(("a", "1", "22", "333"), "bold"), Line(("bb", "4444", "5")), Line(("c", "6", "7", "8"), "dim")]


@pytest.mark.parametrize("width", [None, 80, 24, 15, 5])
def test_every_cell_is_shown_and_tables_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int | None
) -> None:
    monkeypatch.setattr(text, "terminal_width", lambda: width)
    write_table(HEADINGS, LINES)
    shown = [click.unstyle(line) for line in capsys.readouterr().out.splitlines()]
    words = {word for line in shown for word in line.split()}
    assert {*HEADINGS, "a", "bb", "c", "1", "22", "333", "4444", "5", "6", "7", "8"} <= words
    if width is None or width >= 40:
        assert len(shown) == 2 + len(LINES)
    elif width >= 15:
        assert max(map(len, shown)) <= width
        assert sum(line.startswith("name") for line in shown) > 1  # the key is repeated


def test_columns_align(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(text, "terminal_width", lambda: None)
    write_table(HEADINGS, LINES, right=frozenset({1}))
    head, rule, first, second, _ = (click.unstyle(line) for line in capsys.readouterr().out.splitlines())
    assert first.index("1") == head.index("first") + 4
    assert second.index("4444") == head.index("first") + 1
    assert first.index("333") == head.index("third")
    assert set(rule) == {"-"}


def test_colours_can_be_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(click, "echo", print)  # click would strip styles where there is no terminal
    write_table(HEADINGS, LINES)
    assert "\x1b[1m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    write_table(HEADINGS, LINES)
    assert "\x1b" not in capsys.readouterr().out


def test_paragraphs_keep_every_word_and_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "terminal_width", lambda: 30)
    words = [f"word{i}" for i in range(40)]
    lines = wrapped(words, first="Title  ")
    assert max(map(len, lines)) <= 30
    assert lines[0].startswith("Title  word0")
    assert all(line.startswith("       ") for line in lines[1:])
    assert " ".join(lines).split() == ["Title", *words]


def test_sentences_break_on_a_narrow_terminal_and_formulas_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence, formula = " ".join(f"word{i}" for i in range(20)), "gap <= " + "x + " * 20
    told = f"{sentence}\n\n{formula}\n  k = {formula}"
    assert prose(told) == told  # into a file
    monkeypatch.setattr(text, "terminal_width", lambda: 40)
    lines = prose(told).split("\n")
    assert lines[-2:] == [formula, f"  k = {formula}"]
    assert max(map(len, lines[:-2])) <= 40
    assert " ".join(lines[:-3]) == sentence
    found = prose(f"key   {sentence}", indent=6).split("\n")
    assert found[0].startswith("key   word0")
    assert all(line.startswith("      word") and len(line) <= 40 for line in found[1:])


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
