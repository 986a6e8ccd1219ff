"""Find the module of a checkpoint: the user's own, or the transformers library's of a folder it wrote.

The library's model is run by default where it is installed and the model is small enough; no model is run in place
of another.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.errors import NotRun
from boundcalc.checkpoints.modules import called, made_by, with_weights
from boundcalc.checkpoints.readers import Checkpoint
from boundcalc.checkpoints.readers.locate import find_weights_folder

LIBRARY, NOTHING = "transformers", "none"
"""Values of `--compare` other than a module: the library's, or none."""
MOST = 15 * 10**7
"""The most parameters of a library's model that is run by default: that takes about 20 bytes each."""


_SPARE = 10**6
"""Numbers that the library may add, of a read-out that was never saved."""


@dataclass(frozen=True)
class FoundModule:
    """A model whose forward pass an architecture is compared with.

    Attributes:
        module: the user's own, with the weights of the checkpoint.
        load: loads the library's model, as the last step.
        name: of that model.
        asked: whether it was requested: a model that cannot be loaded is refused then.
        why: why there is none, where there could be one.
    """

    module: Any = None
    load: Callable[[], Any] | None = None
    name: str = ""
    asked: bool = False
    why: str = ""


def find_module(path: str | Path, checkpoint: Checkpoint, asked: Any = None) -> FoundModule:
    """The module with which a checkpoint's architecture can be compared.

    Args:
        path: of the checkpoint.
        checkpoint: as it was read.
        asked: "module.py:make", a module, "transformers" (refused where it cannot be had), "none", or None for the
            default.
    """
    if asked == NOTHING:
        return FoundModule(asked=True, why="--compare none")
    if asked is not None and asked != LIBRARY:
        own = made_by(asked, checkpoint) if isinstance(asked, str) else with_weights(asked, checkpoint)
        return FoundModule(own, name=called(own), asked=True)
    folder = find_weights_folder(Path(path))
    named = checkpoint.config.get("architectures")
    if folder is None or not (isinstance(named, list) and len(named) == 1 and "model_type" in checkpoint.config):
        if asked is None:
            return FoundModule()
        raise InvalidSetting(
            f"the transformers library cannot load {path}: it needs a folder of save_pretrained, whose config.json "
            "names one of its classes under architectures; or --compare module.py:make"
        )
    size = checkpoint.size
    name, load = f"{named[0]} of transformers", partial(_loaded, folder, str(named[0]), checkpoint)
    if asked is not None:
        return FoundModule(load=load, name=name, asked=True)
    if size > MOST:
        return FoundModule(
            why=f"its {size:,} numbers are more than the {MOST:,} that are run by default; --compare transformers runs "
            f"them, in about {20 * size / 2**30:.0f} GiB"
        )
    return FoundModule(load=load, name=name)


def _loaded(folder: Path, name: str, checkpoint: Checkpoint) -> Any:
    """What `from_pretrained` gives, from the files alone.

    A config.json that leaves sizes out means the library's own, and billions of numbers that no file has: these are
    counted before any is made.
    """
    for library in ("torch", "transformers"):
        if importlib.util.find_spec(library) is None:
            raise NotRun(f"{library} is not installed, whose {name} it could be compared with")
    import torch
    import transformers

    logging = transformers.utils.logging
    cls = getattr(transformers, name, None)
    if cls is None:
        raise NotRun(f"transformers {transformers.__version__} has no {name}")
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config, size = cls.config_class.from_pretrained(str(folder), local_files_only=True), checkpoint.size
            with torch.device("meta"):
                made = cls(config)
            count = sum(value.numel() for value in (*made.parameters(), *made.buffers()))
            if count > 2 * size + _SPARE:
                raise ValueError(f"its config.json makes a model of {count:,} numbers, the files have {size:,}")
            if any(name.startswith("module.") or "_orig_mod." in name for name in checkpoint.tensors):
                return with_weights(cls(config), checkpoint)  # names that the library does not know as its own
            kinds = {tensor.dtype for tensor in checkpoint.tensors.values() if tensor.is_float}
            wide = (
                "float64" if "float64" in kinds else "float32"
            )  # config.json may name a narrower type than the files have
            kind = getattr(torch, kinds.pop() if kinds in ({"float16"}, {"bfloat16"}) else wide)
            return cls.from_pretrained(str(folder), local_files_only=True, dtype=kind)
    except Exception as error:
        raise NotRun(
            f"transformers {transformers.__version__} does not load {folder} as {name}: "
            f"{' '.join(str(error).split())[:200]}"
        ) from error
    finally:
        logging.set_verbosity(before[0])
        if before[1]:
            logging.enable_progress_bar()
