"""The data of examples/certified_words.py: names of numbers as they are said, and letters that all have a place."""

from __future__ import annotations

import numpy as np
import pytest

from tests.predictors.test_measured import load


@pytest.mark.parametrize(
    ("number", "names"),
    [
        (21, ("twenty-one", "vingt et un", "einundzwanzig", "veintiuno", "ventuno")),
        (80, ("eighty", "quatre-vingts", "achtzig", "ochenta", "ottanta")),
        (
            71_203,
            (
                "seventy-one thousand two hundred three",
                "soixante et onze mille deux cent trois",
                "einundsiebzigtausendzweihundertdrei",
                "setenta y un mil doscientos tres",
                "settantunomiladuecentotré",
            ),
        ),
        (
            121_100,
            (
                "one hundred twenty-one thousand one hundred",
                "cent vingt et un mille cent",
                "einhunderteinundzwanzigtausendeinhundert",
                "ciento veintiún mil cien",
                "centoventunomilacento",
            ),
        ),
    ],
)
def test_numbers_are_called_as_they_are(number: int, names: tuple[str, ...]) -> None:
    example = load("certified_words")
    assert tuple(example.name_of(number, language) for language in example.LANGUAGES) == names


def test_names_tell_numbers_apart_and_every_letter_is_known() -> None:
    example = load("certified_words")
    for language in example.LANGUAGES:
        names = [example.name_of(n, language) for n in [*range(2500), *range(2500, 1_000_000, 997)]]
        assert len(set(names)) == len(names)
        assert set("".join(names)) <= set(example.LETTERS)


def test_examples_of_a_seed_are_the_same_again_and_new_ones_are_others() -> None:
    draws = load("certified_words").draws
    one, two = draws("numbers", "", 3), draws("numbers", "", 3)
    (x, y), (again, answers) = one(50), two(50)
    assert np.array_equal(x, again)
    assert np.array_equal(y, answers)
    assert not np.array_equal(x, one(50)[0])
    assert set(y) == set(range(5))
    assert x.max() > 1
