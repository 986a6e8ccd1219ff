"""A theorem of one's own: an expression or a formula file that becomes a named bound, of the kind its author states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.load import is_name, load_name
from boundcalc.base.prose import plain
from boundcalc.base.sources import Source
from boundcalc.base.strict_json import read_json
from boundcalc.formulas.theorems.theorem import Theorem
from boundcalc.setting import Setting, validate

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula

_KINDS = ("bound", "a_posteriori", "proxy", "estimate")
_ABOUT = ("gap", "risk")


@dataclass(frozen=True)
class Bound:
    """A theorem of one's own, beside the library's in `eval`, `plot`, `derive` and `export`.

    Its formula is evaluated with care, its proof is its author's: everything that shows it says so.

    Attributes:
        name: what tables and legends call it.
        formula: a sympy expression, a text such as "8*C*sqrt(d*log(T)/m)", or a formula of the library's
            (`edelman2022.published`). Symbols called as the library's (T, m, C, gamma, ...; seq_len, n_train, margin)
            take their values from a setting.
        kind: what its author states it is: "bound", "a_posteriori", "proxy" (constants are missing) or "estimate".
        quantity: "gap", or "risk" at training error 0.
        title: a few words.
        author: whose theorem it is.
        assumptions: in words, with LaTeX between dollars where they hold mathematics, as the title may.
        cite: a key of the author's bibliography.
        values: inputs that are fixed, such as an unspecified constant: {"c": 3}.
        inputs: further inputs that a setting determines: {"S": lambda setting: ...}.
    """

    name: str
    formula: Any
    kind: str = "bound"
    quantity: str = "gap"
    title: str = ""
    author: str = ""
    assumptions: tuple[str, ...] = ()
    cite: str = ""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inputs: Mapping[str, Callable[[Setting], float]] = field(default_factory=dict[str, Callable[[Setting], float]])

    def __post_init__(self) -> None:
        from boundcalc.formulas.theorems import BOUNDS, THEOREMS

        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidSetting(f"a bound needs a name, got {validate.shown(self.name)}")
        if self.name in BOUNDS or self.name in THEOREMS:
            raise InvalidSetting(f"{self.name!r} is a bound of the library's: give yours a name of its own")
        validate.choice("kind", self.kind, _KINDS)
        validate.choice("quantity", self.quantity, _ABOUT)
        if isinstance(self.assumptions, str):
            raise InvalidSetting("assumptions is a list of sentences, got one text")
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        for words in (self.title, self.author, *self.assumptions):
            plain(words)  # refuses mathematics that it cannot show
        object.__setattr__(self, "formula", self._read())

    def _read(self) -> Formula:
        from dataclasses import replace

        import sympy

        from boundcalc.formulas.symbolic.formula import Formula
        from boundcalc.formulas.symbolic.read import expression, symbol

        given = self.formula
        if isinstance(given, Theorem):
            given = given.formula()
        if isinstance(given, Formula):
            if given.name not in (self.quantity, "excess", "error"):
                raise InvalidSetting(
                    f"the formula given to {self.name!r} is of the {given.name.replace('_', ' ')}, not of the {self.quantity}"
                )
            found = replace(given, kind=self.kind, name=self.quantity)
        else:
            expr = expression(given) if isinstance(given, str) else sympy.sympify(given)
            if not isinstance(expr, sympy.Expr):
                raise InvalidSetting(f"the formula of {self.name!r} is no expression: {validate.shown(given)}")
            renamed = {old: symbol(old.name) for old in expr.free_symbols if isinstance(old, sympy.Symbol)}
            found = Formula(self.quantity, expr.xreplace(renamed), kind=self.kind)
        return found.with_values(**self.values) if self.values else found

    # -- numbers

    def inputs_at(self, setting: Setting) -> dict[str, float]:
        """The values that a setting gives the formula's inputs."""
        from boundcalc.base import symbols

        found: dict[str, float] = {}
        for name in (symbol.name for symbol in self.formula.inputs):
            entry = symbols.BY_NAME.get(name)
            if name in self.inputs:
                found[name] = self.inputs[name](setting)
            elif entry is not None and entry.field == "C":
                found[name] = self._knob(setting)
            elif entry is not None and entry.field and name != "temperature":
                part = setting.sample if hasattr(setting.sample, entry.field) else setting.architecture
                found[name] = getattr(part, entry.field)
            else:
                raise InvalidSetting(
                    f"{self.name!r} has an input {name!r} that no setting gives: fix it (values={{{name!r}: 1}}) or say "
                    f"how a setting gives it (inputs={{{name!r}: lambda setting: ...}})"
                )
        unread = [name for name in self.inputs if name not in found]
        if unread:
            raise InvalidSetting(f"{self.name!r} has no input {unread[0]!r}; it has {', '.join(found)}")
        return found

    def _knob(self, setting: Setting) -> float:
        if setting.norms.C is None or setting.norms.budgets:
            raise InvalidSetting(
                f"{self.name!r} speaks of C, one budget of every matrix, and the setting has budgets of its own: say how "
                "they give C (inputs={'C': lambda setting: ...})"
            )
        return setting.norms.C

    def log10(self, setting: Setting) -> float:
        """Base-10 logarithm of the formula at a setting, in forty digits and rounded up."""
        value = self.formula.log10(**self.inputs_at(setting))
        return math.nextafter(value, math.inf)

    def value(self, setting: Setting) -> float:
        """The formula at a setting, never below its exact value; inf beyond the range of floats."""
        try:
            return math.nextafter(float(self.formula.mp(**self.inputs_at(setting))), math.inf)
        except OverflowError:
            return math.inf

    # -- as the library's theorems

    @property
    def stated_by(self) -> str:
        """Whose word it is."""
        return self.author or "its author"

    @property
    def theorem(self) -> Theorem:
        """The bound as an object of the library's: what `derive`, `export` and `eval` take."""
        return Theorem(
            name=self.name,
            title=self.title or "a theorem of one's own",
            source=Source(self.cite, self.stated_by, self.title or self.name, 0, "stated by its author"),
            statement=f"Stated by {self.stated_by}; neither proved nor checked here.",
            assumptions=self.assumptions or ("none are stated",),
            published_note="as stated",
            compares=self.quantity,
            differs={},
            also=(),
            uses=(),
            published_form=lambda: self.formula,
            forms=lambda: (None, {self.quantity: lambda: self.formula}),
            kind=self.kind,
            stated_by=self.stated_by,
        )

    def latex(self, *, expand: bool = False) -> str:
        """The formula as the content of a display."""
        return self.formula.latex(expand=expand)

    def code(self, language: str) -> str:
        """The formula in another language."""
        return self.formula.code(language)

    def lambdify(self, *names: str) -> Callable[..., Any]:
        """A NumPy function of the inputs named (all, in order, unless named)."""
        return self.formula.lambdify(*names)

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}, stated by {self.stated_by}): {self.formula.text()}"

    def _repr_latex_(self) -> str:
        return f"$${self.formula.latex()}$$"


def own(name: str) -> Bound:
    """The bound of a Python file's name ("mine.py:bound") or of a formula file ("mine.toml")."""
    file = Path(name.rpartition(":")[0] if is_name(name) else name)
    if not file.is_file():
        raise InvalidSetting(f"there is no file {file}: a bound of one's own is FILE.py:NAME, or FILE.toml")
    return _loaded(name, file.stat().st_mtime_ns)


@cache
def _loaded(name: str, changed: int) -> Bound:
    del changed
    if not is_name(name):
        return _from_file(Path(name))
    from boundcalc.formulas.symbolic.formula import Formula

    found = load_name(name)
    if isinstance(found, Bound):
        return found
    called = name.rpartition(":")[2]
    if isinstance(found, Formula | Theorem) or hasattr(found, "free_symbols"):
        raise InvalidSetting(
            f"{name} is an expression: say what it is, {called} = boundcalc.Bound({called!r}, ..., kind='bound')"
        )
    raise InvalidSetting(f"{name} is a {type(found).__name__}, where a boundcalc.Bound is needed")


_KEYS = ("name", "formula", "kind", "quantity", "title", "author", "assumptions", "cite", "values", "where")


def _from_file(path: Path) -> Bound:
    """A TOML or JSON object of `Bound`'s fields; `where` names parts of the formula, which may use one another."""
    if path.suffix.lower() == ".json":
        data = read_json(str(path), "--bound")
    else:
        import tomllib

        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidSetting(f"{path} is not TOML: {error}") from None
    raw = dict(validate.known_keys(f"{path}, a formula file", data, _KEYS))
    if not isinstance(raw.get("formula"), str):
        raise InvalidSetting(f'{path} needs a formula, such as formula = "8*C*sqrt(d*log(T)/m)"')
    if "kind" not in raw:
        raise InvalidSetting(f"{path} needs the kind its author states, one of {', '.join(_KINDS)}")
    raw.setdefault("name", path.stem)
    raw["formula"] = _with_parts(raw["formula"], raw.pop("where", {}))
    return Bound(**raw)


def _with_parts(text: str, where: object) -> Any:
    """The expression, its named parts put in: each may use those after it."""
    from boundcalc.formulas.symbolic.read import expression, symbol

    if not isinstance(where, Mapping):
        raise InvalidSetting('where is a table of named parts, such as A = "C^2*log(T)"')
    expr: Any = expression(text)
    left = {symbol(str(name)): expression(str(part)) for name, part in where.items()}
    for _ in range(len(left) + 1):
        if not expr.free_symbols & left.keys():
            return expr
        expr = expr.xreplace(left)
    raise InvalidSetting(f"the named parts {', '.join(map(str, where))} refer to each other in a circle")
