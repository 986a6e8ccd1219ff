"""Which device, how many threads, which versions."""

from __future__ import annotations

import platform
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train.defaults import DEVICES


def resolve(name: str) -> str:
    """The kind of a device by name: "auto" picks the quickest; one that this machine lacks is refused."""
    import torch

    name = validate.choice("device", name.partition(":")[0], ("auto", *DEVICES))
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return next(kind for kind, here in present.items() if here)
    if not present[name]:
        raise InvalidSetting(f"there is no device {name!r} here: use --device auto or --device cpu")
    return name


def torch_device(name: str) -> Any:
    """The torch device."""
    import torch

    resolve(name)
    return torch.device(name)


def versions() -> dict[str, str]:
    """Versions that a result was computed with."""
    import torch

    from boundcalc import __version__

    return {"boundcalc": __version__, "torch": torch.__version__, "python": platform.python_version()}
