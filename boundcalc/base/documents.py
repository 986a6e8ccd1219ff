"""Files that people write data in: JSON, YAML or TOML, told apart by their endings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.strict_json import parse_json

SUFFIXES = (".json", ".yaml", ".yml", ".toml")


def read_document(path: Path, what: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The content of a file; `what` it is says who cannot read it ("the sweep file"). A missing file is an `OSError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise error(f"cannot read {what} {path}: it is not text") from None
    return parse_document(path, text, error)


def parse_document(path: Path, text: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of the text of a .yaml, .toml or (any other ending) JSON file; raises `error` where it is none."""
    suffix = path.suffix.lower()
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
    return parse_json(text, str(path), error)
