"""A model of no known family, described by a small JSON or YAML file.

{"architecture": {"style": "pre", "depth": 6, ...},          as in a setting
 "tensors": {"blocks.{b}.attn.q.weight": "W_Q.T", ...},      name pattern -> role (".T": torch.nn.Linear)
 "ignored": {"blocks.{b}.attn.mask": "a buffer"},
 "prefixes": ["module."]}
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.strict_json import parse_json
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.native import said_otherwise
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture
from boundcalc.setting.validate import known_keys


def read_mapping(path: Path) -> Family:
    """The family a file describes."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"cannot read the mapping {path}: {error}") from None
    data = _parse(path, text)
    raw = known_keys(f"mapping {path}", data, ["architecture", "tensors", "ignored", "prefixes"])
    for key in ("architecture", "tensors"):
        if key not in raw:
            raise InvalidSetting(f"mapping {path} needs {key!r}; see docs/weights.md for an example")
    tensors, ignored = _words(path, "tensors", raw["tensors"]), _words(path, "ignored", raw.get("ignored", {}))
    architecture = Architecture.from_json(raw["architecture"])
    prefixes = raw.get("prefixes", [])
    if not isinstance(prefixes, list) or not all(isinstance(p, str) for p in prefixes):
        raise InvalidSetting(f"mapping {path}: 'prefixes' is a list of strings")

    said = raw["architecture"]
    unsaid = {field.name for field in fields(Architecture)} - set(said)
    unsaid &= {"input_radius"} if "layers" in said else unsaid

    def build(model: Model) -> Architecture:
        for name in unsaid:
            if getattr(model.options, name, None) is None:
                model.settings.assume(name, getattr(architecture, name))
        return said_otherwise(model, architecture)

    return Family("mapping", (), tensors, build, ignored, tuple(prefixes), fields=None)


def _parse(path: Path, text: str) -> Any:
    if path.suffix in (".yaml", ".yml"):
        try:
            import yaml
        except ModuleNotFoundError:
            raise CheckpointError(
                f"{path} is YAML, which needs PyYAML: pip install pyyaml, or write it as JSON"
            ) from None
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise CheckpointError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    return parse_json(text, str(path), CheckpointError)


def _words(path: Path, key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        raise InvalidSetting(f"mapping {path}: {key!r} is an object from name patterns to strings")
    return dict(value)
