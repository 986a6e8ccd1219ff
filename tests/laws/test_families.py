"""Families of checkpoints, by the same checks that a user's own are put to."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints import CheckpointError
from boundcalc.checkpoints.families import FAMILIES, Family
from boundcalc.testing import Cases
from tests.cases import families
from tests.cases.families import MODELS
from tests.laws.kinds.families import LAWS as FAMILY_LAWS
from tests.laws.kinds.families import _audit, check_family, norms_are_those_of_the_maps


@pytest.mark.parametrize("name", MODELS)
def test_families(name: str) -> None:
    assert check_family(FAMILIES[name], families.cases(name)) == []


def test_every_family_has_a_model() -> None:
    """Of the library's own models, tests/checkpoints/test_families.py audits what is trained here."""
    assert {*MODELS, "boundcalc"} == set(FAMILIES)


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_that_runs_is_audited(name: str) -> None:
    here = families.example(name)
    assert set(_audit(FAMILIES[name], here).measured) == set(here.maps)


def swapped(name: str) -> Iterator[Family]:
    """Tables in which two tensors of one shape have each other's roles."""
    family, tensors = FAMILIES[name], families.example(name).tensors
    shape = {pattern: tensors[names[0]].shape for pattern, names in families.patterns_of(family, tensors).items()}
    for one, other in itertools.combinations(shape, 2):
        roles = family.tensors[one], family.tensors[other]
        if shape[one] == shape[other] and roles[0] != roles[1] and ("{" in one) == ("{" in other):
            yield replace(family, tensors={**family.tensors, one: roles[1], other: roles[0]})


@pytest.mark.parametrize("name", MODELS)
def test_tensors_that_change_places_are_seen(name: str) -> None:
    """The control of the maps: some of all such tables, as an audit of each takes its time."""
    here, tables = families.example(name), list(swapped(name))
    assert len(tables) >= 2
    for table in random.Random(name).sample(tables, min(4, len(tables))):
        try:
            said = norms_are_those_of_the_maps(table, here)
        except BoundcalcError as error:
            said = str(error)
        assert said is not None


@pytest.mark.parametrize("name", MODELS)
def test_a_factor_of_any_tensor_is_that_of_its_numbers(name: str) -> None:
    """What a table says that the model multiplies a weight by is never left out: maps of heads were once without
    theirs."""
    family, here = FAMILIES[name], families.example(name)
    roles: dict[str, list[str]] = {}
    for pattern, names in families.patterns_of(family, here.tensors).items():
        if "[" not in (role := family.tensors[pattern].removesuffix(".T")):
            roles.setdefault(role, []).extend(names)
    tied = set() if "readout" in roles else {"embedding"}  # whose factor is not that of the read-out
    if family.parameters.get("around_one"):  # these gains are what is stored and 1
        tied |= {"norm_Q.gain", "norm_K.gain"}
    first = [role for role in ("W_V", "W_QKV", "W_13") if role in roles]
    for role in [*first, *random.Random(name).sample(sorted(roles.keys() - tied), 3)]:
        before = family.scales.get(role, lambda _: 1.0)
        scales = {**family.scales, role: lambda model, before=before: 4 * before(model)}
        want = _audit(family, here.but(more={each: 4 * here.tensors[each] for each in roles[role]})).measured
        refused, found = "", want
        try:
            found = _audit(replace(family, scales=scales), here).measured
        except CheckpointError as error:
            refused = str(error)
        assert not refused or re.search("has (a )?scale", refused)
        for key, norms in want.items():
            for norm in ("op", "fro", "sup", "two_one"):
                value, true = getattr(found[key], norm), getattr(norms, norm)
                assert value == (None if true is None else pytest.approx(true, rel=1e-12)), (role, key)


def test_a_family_that_reads_too_little_is_seen() -> None:
    family, (here,) = FAMILIES["llama"], families.cases("llama").examples
    ignoring = replace(family, ignored={**family.ignored, "nobody.knows.this": "it says so itself"})
    found = {complaint.law for complaint in check_family(ignoring, Cases([here], None, {}))}
    assert "an_unknown_tensor_is_refused" in found
    other = replace(here, maps={**here.maps, "norm_final.gain": np.ones(16)})
    found = {complaint.law for complaint in check_family(family, Cases([other], None, {}))}
    assert "norms_are_those_of_the_maps" in found
    assert len(FAMILY_LAWS) == 5
