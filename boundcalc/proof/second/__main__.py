"""`python -m second FILE`: the value of a certificate, from this package, Python and mpmath alone."""

import sys

from . import Refused, confirm, size
from ._numbers import MP, demand

MOST = 8_000_000

if len(sys.argv) != 2:
    sys.exit("give one certificate: python -m second FILE")
try:
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read(MOST + 1)
    demand(len(text) <= MOST, f"more than {MOST} characters")
    confirmed = confirm(text)
except (OSError, UnicodeDecodeError, Refused) as error:
    sys.exit(f"{sys.argv[1]} is not confirmed: {getattr(error, 'strerror', None) or error}")
paid = f", {MP.nstr(confirmed.nats, 6)} nats for what was measured" if confirmed.measured else ""
value = f"e^{MP.nstr(confirmed.log_value, 20)} (about {MP.nstr(MP.exp(confirmed.log_value), 4)})"
said = f"{confirmed.quantity} <= {value} but for a chance of {confirmed.delta!r}{paid}"
sys.stdout.write(f"confirmed: {said}\nby {size()[0]} modules, {size()[1]} lines, Python and mpmath\n")
