"""Sweeps by name: the experiments of the figures, as presets.toml lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boundcalc.base.files import read_document

PRESETS: dict[str, dict[str, Any]] = read_document(Path(__file__).with_name("presets.toml"), "the presets")
"""What `boundcalc sweep NAME` runs."""
