"""Masked patches of digits: the law that is redrawn is what it says, h is its posterior, X6 holds and kappa is needed."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from boundcalc.base.errors import InvalidSetting

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
from boundcalc.cli import main  # noqa: E402
from boundcalc.lab.latent.transfer import condition  # noqa: E402
from boundcalc.lab.train import patches as module  # noqa: E402
from boundcalc.lab.train.patches import HIDDEN, SHOWN, PatchPlan, World, patches, photographed, redrawn  # noqa: E402

PLAN = PatchPlan(asked=(3, 8), labels=(20, 400), seeds=2, steps=200, d=16, fresh=600)


@pytest.fixture(scope="module")
def world() -> World:
    return photographed(PLAN, 0)


@pytest.fixture(scope="module")
def rows() -> Any:
    return patches(PLAN)


def test_the_parts_of_the_images_are_apart_and_whole(world: World) -> None:
    parts = (world.unlabelled, world.labelled, world.test)
    assert [len(part.digits) for part in parts] == [897, 500, 400]
    assert sorted([*SHOWN, *HIDDEN]) == list(range(16))
    from sklearn.datasets import load_digits

    found: Any = load_digits()
    assert np.array_equal(np.sort(np.concatenate([part.digits for part in parts])), np.sort(found.target))
    assert not np.array_equal(photographed(PLAN, 1).test.digits, world.test.digits)


def test_words_are_those_of_their_own_place(world: World) -> None:
    """The corner patches of the digits are nearly always dark: one word; the middle is not."""
    told = [np.bincount(world.test.words[:, place], minlength=PLAN.words).max() / 400 for place in range(16)]
    assert min(told[0], told[12]) > 0.8
    assert max(told[5], told[9]) < 0.6


def test_redrawn_words_have_the_law_of_m_and_are_independent_given_the_digit(world: World) -> None:
    many = world.drawn(np.random.default_rng(0), 200_000)
    threes = many.words[many.digits == 3]
    for place in (1, 6, 10):
        share = np.bincount(threes[:, place], minlength=PLAN.words) / len(threes)
        assert np.abs(share - world.table[place, :, 3]).max() < 0.015
    left, right = (np.eye(PLAN.words)[threes[:, place]] for place in (5, 6))

    def dependence(left: Any, right: Any) -> float:
        return float(np.abs(left.T @ right / len(left) - np.outer(left.mean(0), right.mean(0))).max())

    real = world.unlabelled.words[world.unlabelled.digits == 3]
    assert dependence(left, right) < 0.01
    assert dependence(*(np.eye(PLAN.words)[real[:, place]] for place in (5, 6))) > 0.03  # images are another law


def test_h_is_the_posterior(world: World) -> None:
    """Calibrated on the law it is of: E[1{digit} - h_digit | h_digit] = 0, and E of h is the shares."""
    many = world.drawn(np.random.default_rng(1), 50_000)
    h = world.posterior(many.words)
    assert h.mean(0) == pytest.approx(world.shares, abs=0.006)
    of = h[:, 8]
    for low, high in ((0.05, 0.3), (0.3, 0.7), (0.7, 0.95)):
        some = (of > low) & (of < high)
        assert (many.digits[some] == 8).mean() == pytest.approx(of[some].mean(), abs=0.05)
    flat = replace(world, table=np.sqrt(world.table))  # the negative control: half the evidence is not calibrated
    of = flat.posterior(many.words)[:, 8]
    assert (many.digits[of > 0.7] == 8).mean() > of[of > 0.7].mean() + 0.05


def test_hidden_words_are_not_read(world: World) -> None:
    before, _ = module.pretrained(replace(PLAN, steps=1), world, 0)
    some = world.test.words[:20]
    other = some.copy()
    other[:, HIDDEN] = (other[:, HIDDEN] + 1) % PLAN.words
    assert np.array_equal(module.answers(PLAN, before, some), module.answers(PLAN, before, other))
    assert not np.array_equal(world.posterior(some), world.posterior(np.roll(some, 1, axis=0)))
    other = some.copy()
    other[:, SHOWN] = (other[:, SHOWN] + 1) % PLAN.words
    assert not np.allclose(module.answers(PLAN, before, some), module.answers(PLAN, before, other))


def test_no_training_image_of_the_redrawn_law_is_met_again(world: World) -> None:
    drawn = redrawn(world, PLAN, 0)
    assert len(drawn.unlabelled.words) == PLAN.steps * PLAN.batch
    assert len(drawn.test.words) == PLAN.fresh


def test_x6_holds_and_fewer_places_cost_what_kappa_says(rows: Any) -> None:
    assert [(row.law, row.asked, row.kind) for row in rows] == [
        *(("redrawn", n, "bound") for n in PLAN.asked),
        *(("images", n, "estimate") for n in PLAN.asked),
    ]
    for row in rows:
        assert row.exceeded == 0
        assert row.induced.value < row.bound
        assert row.limit > row.pretext.value
    few, all_ = rows[:2]
    assert few.kappa > 3 * all_.kappa
    assert few.pretext.value < all_.pretext.value  # the pretext alone would have it the other way round
    assert few.induced.value > 3 * all_.induced.value
    assert few.bound / few.kappa**2 * 2 < few.induced.value  # the negative control: without kappa there is no bound


def test_training_is_worth_something(rows: Any, world: World) -> None:
    best = rows[1]
    assert best.fitted[400].value < best.fitted[20].value < 0.9
    assert best.known.value < best.fitted[400].value  # no head of the shown words does better than the posterior
    m = world.pretext(HIDDEN)
    assert m.shape == (8 * PLAN.words, 10)
    assert condition(m, module.pair(3, 5)).rank == 10


def test_a_head_is_fitted_and_not_by_the_test(world: World) -> None:
    """On features that are the digit itself the error is 0; on noise that of chance; on permuted labels too."""
    rng = np.random.default_rng(0)
    digits, other = world.labelled.digits, world.test.digits
    told = module.fitted_error(np.eye(10)[digits], digits, np.eye(10)[other], other)
    assert told == 0
    noise = module.fitted_error(rng.standard_normal((500, 9)), digits, rng.standard_normal((400, 9)), other)
    assert noise > 0.8
    assert module.fitted_error(np.eye(10)[digits], rng.permutation(digits), np.eye(10)[other], other) > 0.7


def test_a_plan_without_sense_is_refused() -> None:
    several: tuple[dict[str, Any], ...] = (
        {"asked": (9,)},
        {"asked": (1,)},
        {"labels": (501,)},
        {"seeds": 1},
        {"asked": (8, 8)},
    )
    for wrong in several:
        with pytest.raises(InvalidSetting):
            PatchPlan(**wrong)
    with pytest.raises(InvalidSetting, match="at least 9"):
        PatchPlan(asked=(1,))


def test_as_it_is_typed() -> None:
    line = "latent patches --asked 8 --m 20 --seeds 2 --steps 2 --d 4 --n-test 100"
    words = shlex.split(line)
    outcome = CliRunner().invoke(main, [*words, "--format", "json"])
    assert outcome.exit_code == 0, outcome.output
    document = json.loads(outcome.stdout)
    page = (Path(__file__).parents[3] / "docs" / "latent.md").read_text().partition("## JSON")[2]
    for key in document["rows"][0]:
        assert key in page, key
    assert "an estimate, as h is what would hold" in " ".join(CliRunner().invoke(main, words).stdout.split())
