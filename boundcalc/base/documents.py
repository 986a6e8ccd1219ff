"""Files that people write data in: JSON, YAML or TOML, told apart by their endings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.strict_json import parse_json
from boundcalc.base.texts import MOST, read_text

SUFFIXES = (".json", ".yaml", ".yml", ".toml")
_MOST_SLOW = 500_000
"""Bytes of YAML and TOML that are read: their libraries take seconds for as much."""


def read_document(path: Path, what: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a .yaml, .toml or (any other ending) JSON file; `what` it is names it in errors.

    A missing file is an `OSError`.
    """
    slow = path.suffix.lower() in (".yaml", ".yml", ".toml")
    return parse_document(path, read_text(path, what, error, most=_MOST_SLOW if slow else MOST), error)


def parse_document(path: Path, text: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a text in the format that the ending of `path` names; raises `error` where it is none."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".toml":
            import tomllib

            try:
                return tomllib.loads(text)
            except tomllib.TOMLDecodeError as wrong:
                raise error(f"{path} is not TOML: {wrong}") from None
        if suffix in (".yaml", ".yml"):
            try:
                import yaml  # type: ignore[import-not-found, import-untyped]
            except ModuleNotFoundError:
                raise error(f"{path} is YAML, which needs PyYAML: pip install pyyaml, or write it as JSON") from None
            try:
                return yaml.safe_load(text)
            except yaml.YAMLError as wrong:
                raise error(f"{path} is not YAML: {' '.join(str(wrong).split())}") from None
    except RecursionError:
        raise error(f"{path} cannot be read: it is nested too deep") from None
    return parse_json(text, str(path), error)
