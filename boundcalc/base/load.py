"""What a user names in a Python file of their own: "mine.py:bound"."""

from __future__ import annotations

import sys
from typing import Any

from boundcalc.base.errors import InvalidSetting


def is_name(word: object) -> bool:
    """Whether a word names something in a Python file."""
    file, _, name = word.rpartition(":") if isinstance(word, str) else ("", "", "")
    return file.endswith(".py") and name.isidentifier()


def load_name(word: str) -> Any:
    """What "mine.py:bound" stands for. The file is executed; what lies next to it can be imported by it."""
    import importlib.util
    from pathlib import Path

    if not is_name(word):
        raise InvalidSetting(f"need a Python file and a name in it, such as mine.py:bound; got {word!r}")
    file, _, name = word.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise InvalidSetting(f"there is no file {file}, in which {name!r} was to be found")
    spec = importlib.util.spec_from_file_location(f"boundcalc_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidSetting(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidSetting(f"{file} fails when it is imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    if not hasattr(module, name):
        names = ", ".join(key for key in vars(module) if not key.startswith("_"))
        raise InvalidSetting(f"{file} has no {name!r}; it has {names or 'no names'}")
    return getattr(module, name)
