"""Records are the dataclasses of the standard library, made another way: the two are compared, feature by feature."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import cached_property
from typing import Any

import pytest

from boundcalc.base import records

MAKERS: dict[str, Callable[..., Any]] = {"standard": dataclasses.dataclass, "record": records.dataclass}


def make(maker: Callable[..., Any], **options: bool) -> Any:
    """A class with every feature that the package's dataclasses use."""

    class Base:
        __slots__ = ()

        def kind(self) -> str:
            return "base"

    class Sample(Base):
        """A sample."""

        __annotations__ = {
            "first": "float",
            "second": "int",
            "third": "list[int]",
            "hidden": "object",
            "apart": "object",
        }
        second = 2
        third = field(default_factory=lambda: [1])
        hidden = field(default=None, repr=False)
        apart = field(default=0, compare=False)

        def __post_init__(self) -> None:
            if self.first < 0:  # type: ignore[attr-defined]
                raise ValueError("negative")

    Sample.__qualname__ = Base.__qualname__ = "Sample"
    return maker(**options)(Sample)


VARIANTS = [{"frozen": True}, {"frozen": True, "slots": True}, {"slots": True}, {}]


@pytest.fixture(params=VARIANTS, ids=str)
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return make(MAKERS["standard"], **request.param), make(MAKERS["record"], **request.param)


def outcome(run: Callable[[], Any]) -> tuple[str, str]:
    try:
        return "value", repr(run())
    except Exception as error:
        return type(error).__name__, str(error)


def refused(run: Callable[[], Any]) -> bool:
    """Whether it fails: with slots, the standard library of Python 3.11 says so by an accident of its own."""
    return outcome(run)[0] != "value"


CALLS: list[Callable[[Any], Any]] = [
    lambda cls: cls(1.5),
    lambda cls: cls(1.5, 3, [4], "h", "a"),
    lambda cls: cls(second=1, first=2.0),
    lambda cls: cls(),
    lambda cls: cls(1, 2, 3, 4, 5, 6),
    lambda cls: cls(1, other=2),
    lambda cls: cls(-1.0),
    lambda cls: cls(1.5) == cls(1.5, apart=9),
    lambda cls: cls(1.5) == cls(1.5, hidden=1),
    lambda cls: cls(float("nan")) == cls(float("nan")),
    lambda cls: cls(1.5) == (1.5, 2, [1], None),
    lambda cls: cls(1.5) != cls(1.6),
    lambda cls: hash(cls(1.5, third=(1,))) == hash(cls(1.5, third=(1,), apart=7)),
    lambda cls: hash(cls(1.5)),
    lambda cls: setattr(cls(1.5), "first", 2.0),
    lambda cls: refused(lambda: setattr(cls(1.5), "unknown", 2.0)),
    lambda cls: delattr(cls(1.5), "first"),
    lambda cls: dataclasses.replace(cls(1.5), second=8),
    lambda cls: dataclasses.replace(cls(1.5), nothing=8),
    lambda cls: dataclasses.asdict(cls(1.5)),
    lambda cls: dataclasses.astuple(cls(1.5)),
    lambda cls: copy.copy(cls(1.5, 3)),
    lambda cls: copy.deepcopy(cls(1.5, 3)),
    lambda cls: [f.name for f in dataclasses.fields(cls)],
    lambda cls: cls.__match_args__,
    lambda cls: cls.__doc__,
    lambda cls: getattr(cls, "__slots__", None),
    lambda cls: hasattr(cls(1.5), "__dict__"),
    lambda cls: str(inspect.signature(cls)).partition("=<")[0],
    lambda cls: list(inspect.signature(cls).parameters),
    lambda cls: cls.__init__.__qualname__,
    lambda cls: cls(1.5).third is cls(1.5).third,
    lambda cls: cls(1.5).kind(),
]


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_what_a_dataclass_does_a_record_does(pair: tuple[Any, Any], call: Callable[[Any], Any]) -> None:
    standard, record = (outcome(lambda cls=cls: call(cls)) for cls in pair)
    assert record == standard


def test_the_comparison_sees_a_difference() -> None:
    frozen, loose = make(MAKERS["record"], frozen=True), make(MAKERS["record"])
    assert any(outcome(lambda call=call: call(frozen)) != outcome(lambda call=call: call(loose)) for call in CALLS)


@records.dataclass(frozen=True, slots=True)
class Held:
    """A record that can be pickled: it has a name in a module."""

    a: int
    b: str = "b"


@records.dataclass(frozen=True)
class Cached:
    """A record with something computed once."""

    a: int

    @cached_property
    def double(self) -> int:
        return 2 * self.a

    def __repr__(self) -> str:
        return "own"


def test_pickles_and_cached_properties() -> None:
    assert pickle.loads(pickle.dumps(Held(1))) == Held(1)
    held = Cached(3)
    assert (held.double, repr(held), {held: 1}[Cached(3)]) == (6, "own", 1)


def test_frozen_dataclasses_may_extend_records() -> None:
    @dataclasses.dataclass(frozen=True)
    class More(Held):
        c: int = 3

    more = More(1, c=5)
    assert (more.a, more.b, more.c) == (1, "b", 5)
    with pytest.raises(FrozenInstanceError):
        more.a = 2  # type: ignore[misc]


def test_fields_that_are_given_by_name_only_are_refused() -> None:
    with pytest.raises(TypeError, match="by name only"):

        @records.dataclass
        class _Named:
            a: int = field(kw_only=True)


def test_eval_compiles_no_dataclass_of_the_standard_library() -> None:
    """What `records` is for: one evaluation meets no class for which six functions are compiled."""
    counted = (
        "import dataclasses, sys\n"
        "made, whole = [], dataclasses.dataclass\n"
        "def count(cls=None, /, **options):\n"
        "    if options.get('init', True):\n"
        "        if cls is None: return lambda cls: count(cls, **options)\n"
        "        if cls.__module__.startswith('boundcalc'): made.append(cls.__qualname__)\n"
        "    return whole(cls, **options)\n"
        "dataclasses.dataclass = count\n"
        "from boundcalc.cli import main\n"
        "try: main(['eval', '--depth', '1'], prog_name='boundcalc')\n"
        "except SystemExit: pass\n"
        "print('made', made, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", counted], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "made []"
