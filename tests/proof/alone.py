"""Certificates as the checker that stands alone sees them: as the text of a file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

from boundcalc.base.errors import CertificateError
from boundcalc.proof import second
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.second._setting import Setting as Read
from boundcalc.proof.second._setting import read_setting
from boundcalc.proof.second._strict import parse
from boundcalc.setting import Setting


def written(certificate: Certificate) -> Any:
    """Its file, with claims that anything fulfils where it has none yet."""
    levels = tuple(replace(x, log_count=1e6 if x.log_count is None else x.log_count) for x in certificate.levels)
    claim = 1e6 if math.isinf(certificate.log_value) else certificate.log_value
    nats = 1e6 if certificate.nats is None else certificate.nats
    return json.loads(json.dumps(replace(certificate, levels=levels, log_value=claim, nats=nats).to_json()))


def value_of(data: Any) -> Any:
    """The log of the value of a document, whatever it claims."""
    try:
        return second.derive(parse(json.dumps(data))).log_value
    except second.Refused as error:
        raise CertificateError(str(error)) from None


def log_value(certificate: Certificate) -> Any:
    """The same of a certificate."""
    return value_of(written(certificate))


def seen(setting: Setting) -> Read:
    """A setting as it is read."""
    return read_setting("setting", json.loads(json.dumps(setting.complete_json())))
