"""`python -m second FILE`: the value of a certificate, from this package, Python and mpmath alone."""

import sys
from pathlib import Path

from . import Refused, confirm, size
from .numbers import MP


def main(words: list[str]) -> int:
    """Exit code 0 where the claim follows, 1 where it does not, 2 where no file is named."""
    if len(words) != 1:
        print("give one certificate: python -m second FILE", file=sys.stderr)  # noqa: T201
        return 2
    try:
        found = confirm(Path(words[0]).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, Refused) as error:
        print(f"not confirmed: {error}", file=sys.stderr)  # noqa: T201
        return 1
    modules, lines = size()
    paid = f", {MP.nstr(found.nats, 6)} nats paid for what was measured" if found.measured else ""
    said = f"{found.quantity} <= e^{MP.nstr(found.log_value, 20)} but for a chance of {found.delta!r}{paid}"
    print(f"confirmed: {said}\nby {modules} modules, {lines} lines, Python and mpmath")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
