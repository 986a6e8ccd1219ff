"""Files that people write by hand: JSON, YAML or TOML, by their suffix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.strict_json import parse_json

SUFFIXES = (".json", ".yaml", ".yml", ".toml")


def read_document(path: Path, what: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The content of a file; `what` it is says who cannot read it ("the sweep file")."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        why = wrong.strerror if isinstance(wrong, OSError) else "it is not text"
        raise error(f"cannot read {what} {path}: {why}") from None
    return parse_document(text, path, error)


def parse_document(text: str, path: Path, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The content of a text that a file of this name has; JSON unless the name says something else."""
    suffix = path.suffix.lower()
    if suffix == ".toml":
        import tomllib

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as wrong:
            raise error(f"{path} is not TOML: {wrong}") from None
    if suffix not in (".yaml", ".yml"):
        return parse_json(text, str(path), error)
    try:
        import yaml  # type: ignore[import-not-found, import-untyped]
    except ImportError:
        raise error(f"{path} is YAML, which needs PyYAML: pip install pyyaml, or write it as JSON") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        raise error(f"{path} is not YAML: {' '.join(str(wrong).split())}") from None
