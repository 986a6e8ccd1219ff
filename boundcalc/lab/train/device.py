"""Which device, how many threads, which versions."""

from __future__ import annotations

import platform
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train.defaults import DEVICES
from boundcalc.setting import validate


def _best_device() -> str:
    """The quickest kind of device here."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def resolve(name: str) -> str:
    """The kind of a device by name: "auto" picks; one that is not there is refused."""
    import torch

    name = validate.choice("device", name.partition(":")[0], ("auto", *DEVICES))
    if name == "auto":
        return _best_device()
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there[name]:
        raise InvalidSetting(f"there is no device {name!r} here: use --device auto or --device cpu")
    return name


def torch_device(name: str) -> Any:
    """The torch device."""
    import torch

    resolve(name)
    return torch.device(name)


def threads() -> int:
    """Threads torch computes with."""
    import torch

    return torch.get_num_threads()


def versions() -> dict[str, str]:
    """What a result was computed with."""
    import torch

    from boundcalc import __version__

    return {"boundcalc": __version__, "torch": torch.__version__, "python": platform.python_version()}
