"""The three questions of docs/explore.md, each answered on the page in two moves with real pointer and keys."""

from __future__ import annotations

import re

import pytest

from boundcalc import evaluate
from boundcalc.engine.solve import solve
from boundcalc.lab.explore import _content as content
from tests.lab.explore.browser import Browser
from tests.lab.explore.pictures import PICTURES, WALKS
from tests.lab.explore.test_page import by_python, every, setting_at, state, text_of, value

DOCUMENT = (PICTURES.parent / "explore.md").read_text(encoding="utf-8")
GROWTH, ENOUGH, VACUOUS = WALKS


def heights(browser: Browser, css: str) -> set[float]:
    """The ordinates of a curve."""
    (drawn,) = every(browser, css, "e.getAttribute('d')")
    return {float(y) for y in re.findall(r",([\d.]+)", drawn)}


def test_the_document_asks_these_questions_and_shows_their_answers() -> None:
    asked = DOCUMENT.partition("## Three questions, two moves each")[2]
    assert re.findall(r"^\*\*(.+?)\*\*", asked, re.M) == list(WALKS)
    assert re.findall(r"\(explore/(\w+)\.png\)", asked) == [walk.name for walk in WALKS.values()]
    assert all((PICTURES / f"{walk.name}.png").stat().st_size < 200_000 for walk in WALKS.values())


def test_best_bound_and_floor_are_flat_in_t_and_the_published_formula_rises(opened: Browser) -> None:
    first, second = WALKS[GROWTH].moves
    first(opened)
    short = {name: value(opened, name) for name in ("best", "floor", "edelman2022")}
    for line in ("best", "floor"):
        drawn = heights(opened, f"path[data-line={line}]")
        assert max(drawn) - min(drawn) < 0.5  # of a pixel
    assert len(heights(opened, "path[data-curve=edelman2022]")) > 20
    second(opened)
    assert state(opened)["T"] == 65536
    long = {name: value(opened, name) for name in short}
    assert long["best"] == short["best"]
    assert long["floor"] == pytest.approx(short["floor"], rel=1e-3)
    grown = by_python("edelman2022", state(opened)) / by_python("edelman2022", {**state(opened), "T": 512})
    assert 1 < grown < 1.05
    assert (long["edelman2022"] or 0) / (short["edelman2022"] or 1) == pytest.approx(grown, rel=1e-9)


def test_the_sentence_says_how_many_sequences_suffice(opened: Browser) -> None:
    for move in WALKS[ENOUGH].moves:
        move(opened)
    view = state(opened)
    assert (view["depth"], view["C"]) == (1, 0.5)
    shown = opened.run("return Number(document.getElementById('suffices').dataset.value)")
    exact = solve(setting_at(view), "m", 0.1, quantity="gap").value
    assert exact * 0.999 <= shown <= exact * 1.02
    assert re.search(r"For 10 points [\d,]+ sequences suffice", text_of(opened, "#suffices"))


def test_a_deep_network_is_vacuous_until_its_norms_fall_and_the_bar_says_who_pays(opened: Browser) -> None:
    first, second = WALKS[VACUOUS].moves
    first(opened)
    assert "the bound is vacuous" in text_of(opened, "#promise")
    assert (value(opened, "best") or 0) > 1
    pieces = dict(every(opened, "#pays li", "[e.dataset.piece, Number(e.dataset.share)]"))
    largest = max(pieces, key=lambda name: pieces[name] if name.startswith("W_") else 0)
    assert largest in ("W_QK[0]", "W_V[0]")
    assert sum(pieces.values()) == pytest.approx(100)
    second(opened)
    view = state(opened)
    assert (view["depth"], view["heads"], view["C"]) == (12, 12, 0.2)
    shown = value(opened, "best") or 0
    assert evaluate(setting_at(view)).gap * 0.99 <= shown < 0.01
    assert "test error at most" in text_of(opened, "#promise")


def test_shares_of_weight_matrices_are_those_of_the_whole_bound(opened: Browser) -> None:
    """More matrices than the page has room for: the rest has a cell of its own, and shares stay what they are."""
    opened.run("set({depth: 12, heads: 16, d: 1024, C: 1, gamma: 0.05, T: 65536, m: 1e11})")
    start = content.at({name: state(opened)[name] for name in content.FIELDS})
    shares = evaluate(start, "T-free").of("gap").shares
    pieces = dict(every(opened, "#pays li", "[e.dataset.piece, Number(e.dataset.share)]"))
    named = {name: share for name, share in pieces.items() if name in shares}
    assert len(shares) > len(named) >= 10
    assert pieces["other weight matrices"] > 5
    for name, share in named.items():
        assert share == pytest.approx(100 * shares[name], abs=1)
