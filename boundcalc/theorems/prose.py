r"""Prose with mathematics, as pages and derivations are written: Markdown with LaTeX between dollars.

`plain` shows it on a terminal, `tex` puts it into an article. What is mathematics is marked where it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.theory import Source, source

_BLOCK = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_STRONG = re.compile(r"(?<!\w)(?:\*\*([^*]+)\*\*|\*([^*]+)\*)(?!\w)")
_PARTS = re.compile(r"(\$[^$]+\$|`[^`]+`)")
_FIRST = 0xE000
"""The first sign of Unicode's private use: signs stand for mathematics and code while the words are changed."""

# -- on a terminal

_LETTERS = """
    alpha beta gamma delta varepsilon epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi varphi chi
    psi omega Gamma Delta Theta Lambda Pi Sigma Phi Psi Omega"""
_GREEK = dict(zip(_LETTERS.split(), "αβγδεεζηθικλμνξπρστφφχψωΓΔΘΛΠΣΦΨΩ", strict=True))
_RELATIONS = """
    le ≤ ge ≥ ne ≠ to → mapsto ↦ in ∈ notin ∉ approx ≈ propto ∝ sim ~ gg ≫ ll ≪ Rightarrow ⇒ supseteq ⊇ subset ⊂ gets ←
    bmod mod mid |"""
_MARKS = """
    cdot · ast ∗ times × infty ∞ otimes ⊗ pm ± circ ∘ ldots ... dots ... cdots ... ell ℓ sum Σ prod ∏ int ∫ star *
    langle ⟨ rangle ⟩ lbrace { rbrace } lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ | ‖ top T prime ' # # { { } } _ _ % % & & vee
    ∨ wedge ∧ oplus ⊕ neg ¬"""
_UNSEEN = "! left right big Big bigg Bigg displaystyle textstyle limits nolimits"
_FUNCTIONS = "log exp max min sup inf Pr det tanh cosh sinh ln arg cos sin deg dim"
_NAMES = frozenset(_FUNCTIONS.split())
_ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304", "overline": "\u0304"}
_ALPHABETS = frozenset(("mathrm", "mathbb", "mathcal", "mathbf", "mathit", "text", "operatorname", "textit", "mathsf"))


def _pairs(table: str) -> dict[str, str]:
    """Commands, each with its sign behind it."""
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_SIGNS = (
    _GREEK
    | {name: f" {sign} " for name, sign in _pairs(_RELATIONS).items()}
    | _pairs(_MARKS)
    | {"colon": ": ", "quad": "   ", "qquad": "   ", **dict.fromkeys((",", " ", ";", ":", "\\"), " ")}
    | dict.fromkeys(_UNSEEN.split(), "")
)
_TOKEN = re.compile(r"\\[a-zA-Z]+\s*|\\.|.", re.DOTALL)
_ATOM = re.compile(r"\w[\u0302-\u0304]?'?(_(\w+|\([^()]*\)))?|\d*\.?\d*|\([^()]*\)|\|[^|]*\||√\w")
_EDGE = "\x00"
"""Stands at the edge of a name, a script, a fraction or a root: a letter or digit next to it is kept apart by a
space."""


def _math(math: str) -> str:
    """LaTeX mathematics as a line of Unicode; refuses what it does not know."""
    tokens = [token.rstrip() if token[0] == "\\" and len(token) > 2 else token for token in _TOKEN.findall(math)]
    tokens.reverse()
    try:
        line = _until(tokens, "")
    except (IndexError, KeyError) as error:
        what = f"the command \\{error.args[0]} is not known" if isinstance(error, KeyError) else "a brace is missing"
        raise InvalidSetting(f"{what} in the mathematics ${math}$, which cannot be shown as text") from None
    line = re.sub(rf"(?<=[\w)'\u0302-\u0304]){_EDGE}+(?=[^\W_]|√)", " ", line).replace(_EDGE, "")
    line = re.sub(r"\s+", " ", line).strip()
    return re.sub(r"(?<=[(\[{⌈⟨]) | (?=[)\]⌉⟩,])| (?=[.;]$)|(?<=·) | (?=·)", "", line)


def _until(tokens: list[str], closing: str) -> str:
    """Everything up to a closing brace, or to the end."""
    out = ""
    while tokens or closing:
        if tokens[-1] == "}":
            tokens.pop()
            if not closing:
                raise IndexError
            break
        out += _item(tokens)
    return out


def _argument(tokens: list[str]) -> str:
    """A group, or the next item."""
    while tokens[-1].isspace():
        tokens.pop()
    if tokens[-1] == "}":
        raise IndexError
    return _item(tokens).strip()


def _item(tokens: list[str]) -> str:
    token = tokens.pop()
    if token == "{":
        return _until(tokens, "}")
    if token in "^_":
        script = _argument(tokens).strip(_EDGE)
        one = re.fullmatch(r"\w+'?|." if token == "_" else r"\d+|\w'?|.", script)
        return f"{token}{script if one else f'({script})'}{_EDGE}"
    if token == "~":
        return " "
    if not token.startswith("\\"):
        return f" {token} " if token in "=<>" else token
    return _command(token[1:], tokens)


def _command(name: str, tokens: list[str]) -> str:
    if name in _NAMES:
        return f"{_EDGE}{name}{_EDGE}"
    if name in ("frac", "tfrac", "dfrac"):
        above, below = _argument(tokens), _argument(tokens)
        return f"{_grouped(above)}/{_grouped(below)}{_EDGE}"
    if name == "binom":
        return f"binom({_argument(tokens)}, {_argument(tokens)})"
    if name == "sqrt":
        inner = _argument(tokens)
        return f"√{inner if len(inner) == 1 else f'({inner})'}{_EDGE}"
    if name in _ALPHABETS:
        word = "".join(_SIGNS.get(token[1:], token) for token in _raw(tokens))
        return word if name == "mathbb" or len(word) == 1 else f"{_EDGE}{word}{_EDGE}"
    if name in _ACCENTS:
        return _argument(tokens) + _ACCENTS[name]
    if name in ("begin", "end"):
        _argument(tokens)
        return " "
    return _SIGNS[name]


def _raw(tokens: list[str]) -> list[str]:
    """The tokens of an argument whose spaces count."""
    first = tokens.pop()
    if first != "{":
        return [first]
    raw: list[str] = []
    while tokens[-1] != "}":
        raw.append(tokens.pop())
    tokens.pop()
    return raw


def _grouped(text: str) -> str:
    bare = text.strip(_EDGE)
    return bare if _ATOM.fullmatch(bare) else f"({bare})"


def plain(text: str) -> str:
    """Prose with mathematics as a terminal shows it."""
    text = _BLOCK.sub(lambda block: f"\n    {_math(block[1])}\n", text)
    text = _FENCE.sub(lambda block: re.sub(r"^", "    ", block[1], flags=re.MULTILINE), text)
    text = _around(text, _unmarked, lambda part: _math(part[1:-1]) if part[0] == "$" else part[1:-1])
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _unmarked(words: str) -> str:
    """Words without marks of emphasis and links, in whole lines."""
    words = _STRONG.sub(lambda mark: mark[1] or mark[2], _LINK.sub(r"\1", words))
    return "\n".join(_joined(words))


def _joined(text: str) -> list[str]:
    """Lines that were wrapped in the source, whole again; lists, tables and displays keep theirs."""
    lines: list[str] = []
    for line in text.splitlines():
        own = not line.strip() or line.startswith(("- ", "|", "    "))
        if own or not lines or not lines[-1].strip() or lines[-1].startswith(("|", "    ")):
            lines.append(line.rstrip())
        else:
            lines[-1] += f" {line.strip()}"
    return lines


def _around(text: str, change: Callable[[str], str], show: Callable[[str], str]) -> str:
    """Text changed around its mathematics and code, which `show` writes; emphasis and links may hold both."""
    parts: list[str] = []

    def keep(part: re.Match[str]) -> str:
        parts.append(part[0])
        return chr(_FIRST + len(parts) - 1)

    changed = change(_PARTS.sub(keep, text))
    return re.sub("[\ue000-\uf8ff]", lambda place: show(parts[ord(place[0]) - _FIRST]), changed)


# -- in an article

_ESCAPES = {
    **{"\\": r"\textbackslash{}", "_": r"\_", "^": r"\^{}", "%": r"\%", "&": r"\&", "#": r"\#", "{": r"\{", "}": r"\}"},
    **{"$": r"\$", "~": r"\~{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "∎": r"\qed{}"},
}
_CITED = re.compile(r"\[([a-z]+\d{4})(?:, ([^\]]+))?\]")
_QUOTED = re.compile(r'"([^"]*)"')


def cited(text: str) -> list[Source]:
    """The papers a text cites."""
    return [source(key) for key, _ in _CITED.findall(text)]


def tex(text: str) -> str:
    """Prose with mathematics as LaTeX."""
    text = _CODE.sub("", text)  # how to compute it in Python is for the documentation
    blocks = [_tex_block(block) for block in re.split(r"\n\n+|(?=^```math$)|(?<=^```)\n", text, flags=re.MULTILINE)]
    return "\n\n".join(block for block in blocks if block.strip())


def _tex_block(block: str) -> str:
    display = _BLOCK.fullmatch(block.strip())
    if display is not None:
        return _display(display[1].strip())
    lines = _joined(block)
    if lines and lines[0].startswith("- "):
        return "\n".join(["\\begin{itemize}", *(f"\\item {_tex_line(line[2:])}" for line in lines), "\\end{itemize}"])
    if lines and lines[0].startswith("|"):
        cells = [
            [_tex_line(cell.strip()) for cell in line.strip("|").split("|")] for line in lines if "---" not in line
        ]
        columns = "l" * len(cells[0])
        return "\n".join(
            [f"\\begin{{tabular}}{{{columns}}}", *(" & ".join(row) + r" \\" for row in cells), r"\end{tabular}"]
        )
    return "\n".join(_tex_line(line) for line in lines)


_WIDEST = 60
"""Glyphs of a display that fit on a line of an article."""
_SHORT = 8
"""Glyphs of a left-hand side that takes no more room than the indent of the line below."""
_QUADS = re.compile(r"(?<=[,;])\s*\\q?quad(?![a-zA-Z])")
_CODE = re.compile(r"^```(?!math)\w+$.*?^```$\n?", re.MULTILINE | re.DOTALL)


def _display(math: str) -> str:
    """A display; one that is too long for a line on several, broken between its parts and before its relations."""
    if _glyphs(math) <= _WIDEST or "\\begin" in math or "&" in math:
        return f"\\[\n{math}\n\\]"
    lines: list[str] = []
    for part in _QUADS.split(math):
        pieces = cut(part.strip(), _RELATION_SIGNS) if _glyphs(part) > _WIDEST else [part.strip()]
        for number, piece in enumerate(pieces):
            between = "" if number else "\\quad "
            if number == 1 and _glyphs(pieces[0]) <= _SHORT and _glyphs(piece) <= _WIDEST + 2 * _SHORT:
                lines[-1] += piece  # a short left-hand side does not stand alone
            elif lines and _glyphs(joined := f"{lines[-1]}{between}{piece}") <= _WIDEST:
                lines[-1] = joined
            else:
                lines.append(f"\\qquad{{}}{piece}" if number else piece)
    return f"\\[\n{math}\n\\]" if len(lines) == 1 else "\\begin{gather*}\n" + " \\\\\n".join(lines) + "\n\\end{gather*}"


_RELATION_SIGNS = ("=", "\\le", "\\ge", "\\leq", "\\geq")
_OPENS = {"{", "(", "[", "\\begin", "\\left", "\\lbrace", "\\langle", "\\lfloor", "\\lceil"}
_CLOSES = {"}", ")", "]", "\\end", "\\right", "\\rbrace", "\\rangle", "\\rfloor", "\\rceil"}


def cut(math: str, before: Collection[str], after: Collection[str] = ()) -> list[str]:
    """Mathematics cut outside of brackets, before signs that have an operand on their left and after others."""
    pieces, depth = [""], 0
    for token in re.findall(r"\\[a-zA-Z]+|\\.|.", math, re.DOTALL):
        depth += (token in _OPENS) - (token in _CLOSES)
        operand = pieces[-1].strip() and not pieces[-1].endswith((",", r"\,", r"\{"))
        if token in before and depth == 0 and operand:
            pieces.append("")
        pieces[-1] += token
        if token in after and depth == 0:
            pieces.append("")
    return pieces


def _glyphs(math: str) -> int:
    """Roughly how many glyphs wide mathematics is."""
    return len(re.sub(r"[{}^_\s]", "", re.sub(r"\\(mathrm|text|operatorname)|\\[a-zA-Z]+|\\.", "x", math)))


def _tex_line(line: str) -> str:
    return _around(line, _tex_words, lambda part: part if part[0] == "$" else f"\\texttt{{{_escaped(part[1:-1])}}}")


def _tex_words(words: str) -> str:
    words = _QUOTED.sub(r"“\1”", _LINK.sub(r"\1", words))
    pieces: list[str] = []
    at = 0
    for match in re.finditer(f"{_CITED.pattern}|{_STRONG.pattern}", words):
        pieces.append(_escaped(words[at : match.start()]))
        key, where, strong, emphasis = match.groups()
        if key:
            pieces.append(f"\\cite[{where}]{{{key}}}" if where else f"\\cite{{{key}}}")
        else:
            pieces.append(f"\\textbf{{{_escaped(strong)}}}" if strong else f"\\emph{{{_escaped(emphasis)}}}")
        at = match.end()
    pieces.append(_escaped(words[at:]))
    return "".join(pieces).replace("“", "``").replace("”", "''")


def _escaped(words: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in words)
