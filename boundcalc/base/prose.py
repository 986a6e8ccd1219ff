r"""Prose with mathematics, as pages and derivations are written: Markdown with LaTeX between dollars.

`plain` shows it on a terminal, `tex` puts it into an article. What is mathematics is marked where it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.sources import Source, source

_BLOCK = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_STRONG = re.compile(r"(?<!\w)(?:\*\*([^*]+)\*\*|\*([^*]+)\*)(?!\w)")
_PARTS = re.compile(r"(\$[^$]+\$|`[^`]+`)")

# -- on a terminal

_LETTERS = """
    alpha beta gamma delta varepsilon epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi varphi chi psi
    omega Gamma Delta Theta Lambda Pi Sigma Phi Psi Omega"""
GREEK = dict(zip(_LETTERS.split(), "αβγδεεζηθικλμνξπρστφφχψωΓΔΘΛΠΣΦΨΩ", strict=True))
_RELATIONS = """
    le ≤ ge ≥ ne ≠ to → mapsto ↦ in ∈ notin ∉ approx ≈ propto ∝ sim ~ gg ≫ ll ≪ Rightarrow ⇒ supseteq ⊇ subset ⊂ gets ←
    bmod mod mid |"""
_MARKS = """
    cdot · ast ∗ times × infty ∞ otimes ⊗ pm ± circ ∘ ldots ... dots ... cdots ... ell ℓ sum Σ prod ∏ int ∫ star * langle ⟨
    rangle ⟩ lbrace { rbrace } lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ | ‖ top T prime ' # # { { } } _ _ % % & & vee ∨ wedge ∧
    oplus ⊕ neg ¬"""
_UNSEEN = "! left right big Big bigg Bigg displaystyle textstyle limits nolimits"


def _pairs(table: str) -> dict[str, str]:
    """Commands, each with its sign behind it."""
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_SIGNS = (
    GREEK
    | {name: f" {sign} " for name, sign in _pairs(_RELATIONS).items()}
    | _pairs(_MARKS)
    | {"colon": ": ", "quad": "   ", "qquad": "   ", **dict.fromkeys((",", " ", ";", ":", "\\"), " ")}
    | dict.fromkeys(_UNSEEN.split(), "")
)
_FUNCTIONS = "log exp max min sup inf Pr det tanh cosh sinh ln arg cos sin deg dim"
_NAMES = frozenset(_FUNCTIONS.split())
_ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304", "overline": "\u0304"}
_ALPHABETS = frozenset(("mathrm", "mathbb", "mathcal", "mathbf", "mathit", "text", "operatorname", "textit", "mathsf"))
_SCRIPTED = re.compile(rf"(?:[Σ∏∫]|(?<!\w)(?:{'|'.join(sorted(_NAMES))}))(?:[_^](?:\w+|.|\([^()]*\)))+$")
"""A sum or a function with its scripts: what follows is not one of them."""
_APART = re.compile(r"(?:[_^](?:\w+|.|\([^()]*\))|√\w)$")
"""A script or a root: a letter or a digit that follows is no part of it."""
_BESIDE = "\x00"
"""Stands beside a word, which is kept apart from letters but not from signs."""
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)
_ATOM = re.compile(r"\d*\.?\d*|\w[\u0302-\u0304]?'?(_\w+|_\([^()]*\))?|\([^()]*\)|\|[^|]*\||√\w")


class _Reader:
    """Reads LaTeX mathematics token by token; refuses what it does not know."""

    def __init__(self, math: str) -> None:
        self._math = math
        self._tokens = _TOKEN.findall(math)
        self._at = 0

    def _refuse(self, why: str) -> InvalidSetting:
        return InvalidSetting(f"{why} in the mathematics ${self._math}$, which cannot be shown as text")

    def all(self, *, group: bool = False) -> str:
        """Everything up to the end, or to the brace that closes this group."""
        out = ""
        while self._at < len(self._tokens) or group:
            if self._at >= len(self._tokens):
                raise self._refuse("a brace is not closed")
            if self._tokens[self._at] == "}":
                if not group:
                    raise self._refuse("a brace is not opened")
                self._at += 1
                break
            item = self._item()
            starts = item.removeprefix(_BESIDE)[:1]
            if starts not in "_^" and (
                _SCRIPTED.search(out) or (_APART.search(out) and (starts.isalnum() or starts == "√"))
            ):
                out += " "
            out += item
        return out

    def _argument(self) -> str:
        """A group, or the next item without its scripts."""
        while self._at < len(self._tokens) and self._tokens[self._at].isspace():
            self._at += 1
        if self._at < len(self._tokens) and self._tokens[self._at] == "{":
            self._at += 1
            return self.all(group=True).strip()
        if self._at >= len(self._tokens) or self._tokens[self._at] == "}":
            raise self._refuse("something is missing at the end")
        return self._item().strip()

    def _item(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        if token == "{":
            return self.all(group=True)
        if token in "^_":
            script = self._argument()
            one = re.fullmatch(r"\d+|\w'?|.|\x00\w+\x00" if token == "^" else r"[\w\x00]+'?|.", script)
            script = script.replace(_BESIDE, "")
            return token + (script if one else f"({script})")
        if token == "~":
            return " "
        if token.isspace():  # one that ends the name of a command is no more than that
            return "" if re.fullmatch(r"\\[A-Za-z]+", self._tokens[self._at - 2]) and self._at > 1 else " "
        if not token.startswith("\\"):
            return f" {token} " if token in "=<>" else token
        return self._command(token[1:])

    def _command(self, name: str) -> str:
        if name in _NAMES:
            follows = self._tokens[self._at : self._at + 1]
            spaced = bool(follows) and (follows[0].isalnum() or follows[0].startswith("\\") or follows[0].isspace())
            return f" {name} " if spaced else f" {name}"
        if name in ("frac", "tfrac", "dfrac"):
            above, below = self._argument(), self._argument()
            return f"{_grouped(above)}/{_grouped(below)}{_BESIDE}"  # what follows is no part of what is below
        if name == "binom":
            return f"binom({self._argument()}, {self._argument()})"
        if name == "sqrt":
            return f"√{_grouped(self._argument(), always=True)}"
        if name in _ALPHABETS:
            word = self._word()
            return f"{_BESIDE}{word}{_BESIDE}" if len(word) > 1 and name != "mathbb" else word
        if name in _ACCENTS:
            return self._argument() + _ACCENTS[name]
        if name in ("begin", "end"):
            self._argument()
            return " "
        if name not in _SIGNS:
            raise self._refuse(f"the command \\{name} is not known")
        return _SIGNS[name]

    def _word(self) -> str:
        """Letters in another alphabet; spaces count."""
        if self._tokens[self._at] != "{":
            return self._argument()
        start, depth = self._at + 1, 0
        while True:
            depth += (self._tokens[self._at] == "{") - (self._tokens[self._at] == "}")
            self._at += 1
            if depth == 0:
                break
            if self._at >= len(self._tokens):
                raise self._refuse("a brace is not closed")
        inside = self._tokens[start : self._at - 1]
        return "".join(self._command(token[1:]) if token.startswith("\\") else token for token in inside)


def _grouped(text: str, *, always: bool = False) -> str:
    if text.startswith("(") and _ATOM.fullmatch(text):
        return text
    return f"({text})" if (always and len(text) > 1) or not _ATOM.fullmatch(text) else text


def _plain_math(math: str) -> str:
    """LaTeX mathematics as a line of Unicode."""
    line = re.sub(rf"(?<=\w){_BESIDE}+(?=\w)", " ", _Reader(math).all()).replace(_BESIDE, "")
    line = re.sub(r" +", " ", line).strip()
    return re.sub(r"(?<=[(\[{⌈⟨]) | (?=[)\]⌉⟩,])| (?=[.;]$)|(?<=·) | (?=·)", "", line)


def plain(text: str) -> str:
    """Prose with mathematics as a terminal shows it."""
    text = _BLOCK.sub(lambda block: f"\n    {_plain_math(block[1])}\n", text)
    text = _FENCE.sub(lambda block: re.sub(r"^", "    ", block[1], flags=re.MULTILINE), text)
    text = _outside(text, lambda words: _STRONG.sub(lambda found: found[1] or found[2], _LINK.sub(r"\1", words)))
    text = _PARTS.sub(
        lambda part: _plain_math(part[0][1:-1]) if part[0][0] == "$" else part[0][1:-1], "\n".join(_joined(text))
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip()


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


def _outside(text: str, change: Callable[[str], str]) -> str:
    """Text changed where it is neither mathematics nor code."""
    return "".join(part if part[:1] in ("$", "`") else change(part) for part in _PARTS.split(text))


# -- in an article

_ESCAPES = {
    **{"\\": r"\textbackslash{}", "_": r"\_", "^": r"\^{}", "%": r"\%", "&": r"\&", "#": r"\#", "{": r"\{", "}": r"\}"},
    **{"$": r"\$", "~": r"\~{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "∎": ""},
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
_QUADS = re.compile(r"(?<=[,;])\s*\\q?quad(?![a-zA-Z])")
_CODE = re.compile(r"^```(?!math)\w+$.*?^```$\n?", re.MULTILINE | re.DOTALL)


def _display(math: str) -> str:
    """A display; one that is too long for a line on several, broken between its parts and before its relations."""
    if _glyphs(math) <= _WIDEST or "\\begin" in math or "&" in math:
        return f"\\[\n{math}\n\\]"
    lines: list[str] = []
    for part in _QUADS.split(math):
        pieces = _at_relations(part.strip()) if _glyphs(part) > _WIDEST else [part.strip()]
        for number, piece in enumerate(pieces):
            between = "" if number else "\\quad "
            if lines and _glyphs(joined := f"{lines[-1]}{between}{piece}") <= _WIDEST:
                lines[-1] = joined
            else:
                lines.append(f"\\qquad{{}}{piece}" if number else piece)
    return f"\\[\n{math}\n\\]" if len(lines) == 1 else "\\begin{gather*}\n" + " \\\\\n".join(lines) + "\n\\end{gather*}"


_OPENS = {"{", "(", "[", "\\left", "\\lbrace", "\\langle", "\\lfloor", "\\lceil"}
_CLOSES = {"}", ")", "]", "\\right", "\\rbrace", "\\rangle", "\\rfloor", "\\rceil"}


def _at_relations(math: str) -> list[str]:
    """Mathematics cut before every relation that no bracket holds."""
    pieces, depth = [""], 0
    for token in _TOKEN.findall(math):
        depth += (token in _OPENS) - (token in _CLOSES)
        if token in ("=", "\\le", "\\ge", "\\leq", "\\geq") and depth == 0 and pieces[-1].strip():
            pieces.append("")
        pieces[-1] += token
    return pieces


def _glyphs(math: str) -> int:
    """Roughly how many glyphs wide mathematics is."""
    return len(re.sub(r"[{}^_\s]", "", re.sub(r"\\(mathrm|text|operatorname)|\\[a-zA-Z]+|\\.", "x", math)))


def _tex_line(line: str) -> str:
    out = ""
    for part in _PARTS.split(line):
        if part.startswith("$"):
            out += part
        elif part.startswith("`"):
            out += f"\\texttt{{{_escaped(part[1:-1])}}}"
        else:
            out += _tex_words(part)
    return out


def _tex_words(words: str) -> str:
    words = _QUOTED.sub(r"“\1”", _LINK.sub(r"\1", words))
    pieces: list[str] = []
    at = 0
    for found in re.finditer(f"{_CITED.pattern}|{_STRONG.pattern}", words):
        pieces.append(_escaped(words[at : found.start()]))
        key, where, strong, emphasis = found.groups()
        if key:
            pieces.append(f"\\cite[{where}]{{{key}}}" if where else f"\\cite{{{key}}}")
        else:
            pieces.append(f"\\textbf{{{_escaped(strong)}}}" if strong else f"\\emph{{{_escaped(emphasis)}}}")
        at = found.end()
    pieces.append(_escaped(words[at:]))
    return "".join(pieces).replace("“", "``").replace("”", "''")


def _escaped(words: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in words)
