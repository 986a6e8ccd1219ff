"""Names of numbers in five languages: a text without an author, from which any number of independent examples can be
drawn."""

from __future__ import annotations

from collections.abc import Callable

LANGUAGES = ("English", "French", "German", "Spanish", "Italian")


def _words(text: str) -> list[str]:
    return text.split()


_ENGLISH = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_ENGLISH_TENS = _words("twenty thirty forty fifty sixty seventy eighty ninety")
_FRENCH = _words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf"
)
_FRENCH_TENS = _words("vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt")
_GERMAN = _words(
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
)
_GERMAN_TENS = _words("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
_SPANISH = _words(
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete "
    "veintiocho veintinueve"
)
_SPANISH_TENS = _words("treinta cuarenta cincuenta sesenta setenta ochenta noventa")
_SPANISH_HUNDREDS = _words(
    "ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
)
_ITALIAN = _words(
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove"
)
_ITALIAN_TENS = _words("venti trenta quaranta cinquanta sessanta settanta ottanta novanta")


def name_of(number: int, language: str) -> str:
    """The name of a number below a million."""
    if not 0 <= number < 1_000_000:
        raise ValueError(f"numbers from 0 to 999999 have names here, got {number}")
    return _NAMES[language](number)


def _english(n: int) -> str:
    if n < 20:
        return _ENGLISH[n]
    if n < 100:
        return _ENGLISH_TENS[n // 10 - 2] + (f"-{_ENGLISH[n % 10]}" if n % 10 else "")
    size, word = (100, "hundred") if n < 1000 else (1000, "thousand")
    rest = n % size
    return f"{_english(n // size)} {word}" + (f" {_english(rest)}" if rest else "")


def _french(n: int) -> str:
    if n < 20:
        return _FRENCH[n]
    if n < 100:
        tens = _FRENCH_TENS[n // 10 - 2]
        unit = n % 20 if n >= 60 else n % 10
        if unit == 0:
            return tens + ("s" if n == 80 else "")
        joint = " et " if unit in (1, 11) and n < 80 else "-"
        return tens + joint + _FRENCH[unit]
    if n < 1000:
        count = "" if n < 200 else f"{_FRENCH[n // 100]} "
        plural = "s" if n >= 200 and n % 100 == 0 else ""
        return f"{count}cent{plural}" + (f" {_french(n % 100)}" if n % 100 else "")
    thousands = (
        "" if n < 2000 else _french(n // 1000).replace("cents", "cent").replace("quatre-vingts", "quatre-vingt") + " "
    )
    return f"{thousands}mille" + (f" {_french(n % 1000)}" if n % 1000 else "")


def _german(n: int, *, last: bool = True) -> str:
    if n == 1:
        return "eins" if last else "ein"
    if n < 20:
        return _GERMAN[n]
    if n < 100:
        unit = f"{_german(n % 10, last=False)}und" if n % 10 else ""
        return unit + _GERMAN_TENS[n // 10 - 2]
    size, word = (100, "hundert") if n < 1000 else (1000, "tausend")
    return _german(n // size, last=False) + word + (_german(n % size, last=last) if n % size else "")


def _spanish(n: int) -> str:
    if n < 30:
        return _SPANISH[n]
    if n < 100:
        return _SPANISH_TENS[n // 10 - 3] + (f" y {_SPANISH[n % 10]}" if n % 10 else "")
    if n == 100:
        return "cien"
    if n < 1000:
        return _SPANISH_HUNDREDS[n // 100 - 1] + (f" {_spanish(n % 100)}" if n % 100 else "")
    thousands = _spanish(n // 1000)
    if thousands.endswith("veintiuno"):
        thousands = thousands.replace("veintiuno", "veintiún")
    elif thousands.endswith("uno"):  # one loses its last letter before what it counts
        thousands = thousands[:-1]
    count = "" if n < 2000 else f"{thousands} "
    return f"{count}mil" + (f" {_spanish(n % 1000)}" if n % 1000 else "")


def _italian(n: int) -> str:
    name = _italian_parts(n)
    return f"{name[:-1]}é" if name.endswith("tre") and n > 3 else name


def _italian_parts(n: int) -> str:
    if n < 20:
        return _ITALIAN[n]
    if n < 100:
        tens, unit = _ITALIAN_TENS[n // 10 - 2], n % 10
        if unit in (1, 8):  # two vowels become one
            tens = tens[:-1]
        return tens + (_ITALIAN[unit] if unit else "")
    if n < 1000:
        count = "" if n < 200 else _ITALIAN[n // 100]
        return f"{count}cento" + (_italian_parts(n % 100) if n % 100 else "")
    thousands = "mille" if n < 2000 else f"{_italian_parts(n // 1000)}mila"
    return thousands + (_italian_parts(n % 1000) if n % 1000 else "")


_NAMES: dict[str, Callable[[int], str]] = dict(
    zip(LANGUAGES, (_english, _french, _german, _spanish, _italian), strict=True)
)
