"""Plain-text mathematics, as statements and hypotheses are written, as LaTeX inside prose."""

from __future__ import annotations

import re

_GREEK = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "rho",
    "sigma",
    "tau",
    "kappa",
    "lambda",
    "Lambda",
    "mu",
    "phi",
    "Phi",
    "Pi",
    "psi",
    "theta",
    "Gamma",
)
_FUNCTIONS = ("log", "exp", "max", "min", "sup", "inf", "ceil", "floor")
_QUANTITIES = (
    *("eps", "sum", "prod", "sign", "kap", "steps", "attention", "sqrt", "tanh", "cosh", "binom"),
    *("tilt", "lip", "lam", "Cov", "vol", "rank", "net", "risk", "train", "margin", "hat", "yhat", "xtw", "xtW", "mnT"),
)
_STARTS = ("sum", "log", "cosh", "exp", "sup", "vol", "lip", "lam", "tilt", "yhat", "I")
"""Words that begin a stretch of mathematics where mathematics follows."""
_PRODUCT = re.compile(r"^([a-z]{1,2}[A-Z]|dk|Nk|dv|hh)$")
"""Products of letters, such as xW."""
_OPERATORS = {
    "<=": r"\le",
    ">=": r"\ge",
    "->": r"\to",
    "=": "=",
    "<": "<",
    ">": ">",
    "+": "+",
    "-": "-",
    "*": r"\cdot",
    "/": "/",
    "<-": r"\leftarrow",
    "~": r"\approx",
    "|": "|",
}
_TRAIL = re.compile(r"[,;.:]+$")
_MATH = re.compile(r"[_^=<>|{}\\+*/]|\d|^\(?[B-HJ-Zb-hj-z]\)?'?$|\w\(|\b[EP]\[")
_WORD = re.compile(r"^[A-Za-z][A-Za-z'’-]*$|^\([A-Za-z][a-z'-]+$|^[A-Za-z][a-z'-]+\)$|^\([A-Za-z]+\)$")
_NAMES = re.compile(r"^[A-Z]{1,3}\d+[a-z]*(-[A-Z]\d+)?('s)?$|^norm_\w+(\.\w+)?$")


_ANGLE = re.compile(r"<(?=[A-Za-z(])"), re.compile(r"(?<=[\w)}'])>(?!=)")
_INSIDE = r"((?:[^|\[\]()]|\([^|()]*\))+)"
_GIVEN = re.compile(rf"(?<=[\[(]){_INSIDE}\|{_INSIDE}(?=[\])])")
"""A bar between what is drawn and what is given, as in E[v|k]."""
_PLAIN = re.compile(r"(?<![A-Za-z_\\])[A-Za-z]{3,}(?![A-Za-z(])")
_NUMBER = re.compile(r"^\d+(\.\d+)?$")


def _closes(text: str) -> bool:
    """Whether every bracket is closed."""
    text = _GIVEN.sub(r"\1\2", text)
    pairs = all(text.count(a) == text.count(b) for a, b in ("()", "{}", "[]"))
    return pairs and text.count("|") % 2 == 0 and len(_ANGLE[0].findall(text)) == len(_ANGLE[1].findall(text))


def _is_math(token: str) -> bool:
    """Whether a token of prose is mathematics."""
    bare = token.strip("()")
    if _NAMES.match(bare):
        return False
    if bare in _GREEK or bare in ("eps", "eps_j") or _PRODUCT.match(bare):
        return True
    if token in _OPERATORS:
        return False
    if _WORD.match(token) and len(bare) > 1:
        return False
    if re.fullmatch(r"\d+(\.\d+)?(th|st|nd|%)?|\d+-\w+|[a-z]+-\d+", token):
        return False
    return bool(_MATH.search(token))


def to_latex(words: str, *, dollars: str = "$") -> str:
    """Prose in which what looks like mathematics is set as mathematics, the rest escaped for LaTeX."""
    tokens = re.sub(r"(?<=\w)-(?=Lipschitz)", "- ", words).split(" ")
    out: list[str] = []
    index = 0
    while index < len(tokens):
        run, index_after = _run(tokens, index)
        if run is None:
            out.append(_single(tokens[index], dollars))
            index += 1
        else:
            body, trail = run
            out.append(f"{dollars}{_math(body)}{dollars}{trail}")
            index = index_after
    return " ".join(out).replace(f"-{dollars} Lipschitz", f"{dollars}-Lipschitz").replace("- Lipschitz", "-Lipschitz")


def _single(token: str, dollars: str) -> str:
    """A token on its own: mathematics inside brackets of prose, or a word."""
    found = re.fullmatch(r"(\(*)(.*?)(-?)([),;.:]*)", token)
    if found is not None and found[2] and (found[1] or found[3] or found[4]):
        inner = found[2]
        if _is_math(inner) and _closes(inner):
            return f"{found[1]}{dollars}{_math(inner)}{dollars}{found[3]}{found[4]}"
    return _escape(token)


def _run(tokens: list[str], start: int) -> tuple[tuple[str, str] | None, int]:
    """The longest stretch of mathematics from a token on: math tokens joined by operators."""
    first = _TRAIL.sub("", tokens[start])
    follows = tokens[start + 1] if start + 1 < len(tokens) else ""
    leads = follows in _OPERATORS and first == tokens[start]
    begins = first == tokens[start] and first.lstrip("(") in _STARTS and (leads or (_is_math(_TRAIL.sub("", follows))))
    if not (begins or _is_math(first) or (leads and (_NUMBER.match(first) or re.fullmatch(r"[A-Za-z]", first)))):
        return None, start
    body: list[str] = []
    index = start
    trail = ""
    while index < len(tokens):
        token = tokens[index]
        bare = _TRAIL.sub("", token)
        inside = bool(body) and not _closes(" ".join(body))
        operator = bare in _OPERATORS and bool(body)
        if bare.endswith(")") and not _closes(" ".join([*body, bare])) and _closes(" ".join([*body, bare[:-1]])):
            bare = _TRAIL.sub("", bare[:-1])  # the bracket is the prose's
        joined = not body or body[-1] in _OPERATORS or _is_math(body[-1])
        plain_size = bool(_NUMBER.match(bare) or re.fullmatch(r"[A-Za-z]", bare)) and joined
        after_operator = bool(body) and body[-1] in _OPERATORS
        fits = _is_math(bare) or (plain_size and (after_operator or not body or bare != "a"))
        if not (fits or operator or inside or (body and bare in _FUNCTIONS) or (begins and not body)):
            break
        if operator and not inside and (index + 1 >= len(tokens) or token != bare):
            break
        body.append(token if inside or index + 1 < len(tokens) else bare)
        if token != bare and _closes(" ".join([*body[:-1], bare])):
            body[-1], trail = bare, token[len(bare) :]
            index += 1
            break
        index += 1
    while body and body[-1] in _OPERATORS:
        body.pop()
        index -= 1
    text = " ".join(body)
    plain_words = set(_PLAIN.findall(text)) - {*_FUNCTIONS, *_GREEK, *_QUANTITIES}
    if not body or not _closes(text) or plain_words:
        return None, start
    return (" ".join(body), trail), index


def _math(body: str) -> str:
    """ASCII mathematics as LaTeX."""
    text = re.sub(r"\b(f|y)_?hat\b", r"\\hat \1", body)
    text = re.sub(r"(?<![A-Za-z_\\])l_?(1|2|inf)\b", r"\\ell_\1", text)
    text = re.sub(r"<(?=[A-Za-z(])([^<>=]*,[^<>=]*)>(?!=)", r"\\langle \1\\rangle ", text)
    text = re.sub(r"(?<![_^])\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}", r"\\{\1\\}", text)
    text = re.sub(r"(?<=[a-z])\*(?![\w ])|(?<=[a-z])\*(?=$|[ )|]|\()", r"^{\\ast}", text)
    text = re.sub(r"\bd x k\b", r"d \\times k", text).replace("!=", r"\ne ").replace(" ~ ", r" \approx ")
    text = re.sub(r"\bsqrt (\w)\b", r"sqrt(\1)", text)
    text = re.sub(r"\^([A-Z]\([^()]*\))", r"^(\1)", text)
    for name, macro in (("sqrt", r"\sqrt"), ("^", "^"), ("_", "_")):
        text = _with_braces(text, name, macro)
    text = re.sub(r"_(op|21|11|in|out|model|head|inf|train|pre|Sp|QK|ff)\b", _subscript, text)
    text = re.sub(r"_\{([A-Za-z]{3,})\}", r"_{\\mathrm{\1}}", text)
    text = re.sub(r"\^(\w{2,})", r"^{\1}", text)
    text = re.sub(r"_(\w{2,})", lambda m: f"_{{{m[1]}}}", text)
    for token, macro in (
        ("<->", r"\leftrightarrow"),
        ("<=", r"\le "),
        (">=", r"\ge "),
        ("->", r"\to "),
        ("<-", r"\gets "),
    ):
        text = text.replace(token, macro)
    text = text.replace("*", r"\cdot ")
    text = re.sub(r"\beps\b|\beps(?=_)", r"\\varepsilon ", text)
    text = re.sub(r"\bkap\b", "kappa", text)
    for letter in _GREEK:
        text = re.sub(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])", rf"\\{letter} ", text)
    text = re.sub(r"(?<![A-Za-z\\])(log|exp|max|min|sup|inf|cosh|tanh)(?![A-Za-z])", r"\\\1 ", text)
    text = re.sub(r"(?<![A-Za-z\\])(sum|prod)(?![A-Za-z])", r"\\\1\\nolimits ", text)
    text = re.sub(r"(?<![A-Za-z\\{])([A-Za-z]{2,})(?![A-Za-z}])", _upright, text)
    text = re.sub(r"(?<!\\)([%#&])", r"\\\1", text)
    return re.sub(r"  +", " ", text).strip()


def _subscript(found: re.Match[str]) -> str:
    name = found[1]
    return {"21": "_{2,1}", "11": "_{1,1}", "inf": r"_{\infty}"}.get(name, rf"_{{\mathrm{{{name}}}}}")


def _upright(found: re.Match[str]) -> str:
    word = found[1]
    if word == "in":
        return r"\in "
    product = word not in ("is", "id", "kl", "or") and (len(word) == 2 or word == "xtw" or _PRODUCT.match(word))
    return word if product else rf"\mathrm{{{word}}}"


def _with_braces(text: str, name: str, macro: str) -> str:
    """name(...) with its matching parenthesis as macro{...}."""
    out = ""
    while True:
        start = text.find(name + "(")
        if start < 0:
            return out + text
        depth, end = 0, start + len(name)
        for end in range(start + len(name), len(text)):
            depth += (text[end] == "(") - (text[end] == ")")
            if depth == 0:
                break
        inner = _with_braces(text[start + len(name) + 1 : end], name, macro)
        out += text[:start] + f"{macro}{{{inner}}}"
        text = text[end + 1 :]


_ESCAPES = {
    "\\": r"\textbackslash{}",
    "_": r"\_",
    "^": r"\^{}",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\~{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
}


def _escape(token: str) -> str:
    if token in ("<=", ">=", "->", "=", "<", ">", "+", "/", "|"):
        return f"${_OPERATORS[token]}$"
    opening = token.startswith('"')
    body = "".join(_ESCAPES.get(letter, letter) for letter in (token[1:] if opening else token))
    return f"``{body}" if opening else body
