"""Torch modules at hand: found, given the weights of a file, and run in double precision.

The transformers library's model of a folder that it wrote is run by default where it is installed and the model is
small enough; no model is run in place of another.
"""

from __future__ import annotations

import copy
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import load_name
from boundcalc.checkpoints.errors import CheckpointError, NotRun
from boundcalc.checkpoints.families.names import stripped
from boundcalc.checkpoints.readers import find_weights_folder
from boundcalc.checkpoints.tensors import Checkpoint, to_float


def bare(module: Any) -> Any:
    """The module inside of what torch.compile and data-parallel training wrap around it."""
    while True:
        inner = getattr(module, "_orig_mod", None)
        if inner is None and type(module).__name__ in ("DataParallel", "DistributedDataParallel"):
            inner = module.module
        if inner is None:
            return module
        module = inner


def called(module: Any) -> str:
    """The name of a module's class, and of its library where it is one of transformers."""
    cls = type(bare(module))
    return f"{cls.__name__} of transformers" if cls.__module__.startswith("transformers.") else cls.__name__


def double_precision_copy(module: Any) -> Any:
    """A copy in evaluation mode and double precision, without fused attention; the module itself stays as it is."""
    double = copy.deepcopy(bare(module)).double().cpu().eval()
    config = getattr(double, "config", None)
    if config is not None and hasattr(config, "_attn_implementation"):
        if hasattr(double, "set_attn_implementation"):
            double.set_attn_implementation("eager")
        else:
            config._attn_implementation = "eager"
    return double


@contextmanager
def ready() -> Iterator[None]:
    """No gradients, no fused kernels, and double precision where a forward pass asks for a narrower one."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.overrides import TorchFunctionMode

    narrow = (torch.float32, torch.float16, torch.bfloat16)
    casts = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)

    def wide(value: Any) -> Any:
        return torch.float64 if value in narrow else value

    class Double(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in casts:
                return args[0].double()
            dtypes = {k: wide(v) if isinstance(v, torch.dtype) else v for k, v in (kwargs or {}).items()}
            return func(*(wide(a) if isinstance(a, torch.dtype) else a for a in args), **dtypes)

    fast, default = torch.backends.mha.get_fastpath_enabled(), torch.get_default_dtype()
    torch.backends.mha.set_fastpath_enabled(False)
    torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings(), torch.no_grad(), sdpa_kernel(SDPBackend.MATH), Double():
            warnings.filterwarnings("ignore", "Using a non-tuple sequence")  # torch's own, of any mode like this one
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        torch.set_default_dtype(default)


def as_arrays(x: Any) -> Any:
    """Inputs as a module takes them: whole numbers, or doubles; a copy, as a module may write into it."""
    import torch

    values = np.asarray(x)
    return torch.tensor(values if values.dtype.kind in "iu" else values.astype(np.float64)).contiguous()


_ANSWERS = ("logits", "prediction_logits", "image_embeds", "text_embeds", "last_hidden_state")
"""Names that models of the transformers library give to what they answer; rows, where there is no read-out yet."""


def _logits_of(module: Any, x: Any) -> Any:
    """What a module answers to a batch: its logits, or the first tensor of what it returns."""
    import torch

    out = module(x)
    logits = out[0] if isinstance(out, tuple | list) and not hasattr(out, "_fields") else out
    kind = getattr(getattr(bare(module), "config", None), "model_type", "")
    pooled = kind in ("siglip_text_model", "siglip_vision_model")  # whose read-out, or pooling, is part of the tower
    names = ("pooler_output", *_ANSWERS) if pooled else _ANSWERS
    fields = out if isinstance(out, dict) else {name: getattr(out, name) for name in names if hasattr(out, name)}
    logits = next((fields[name] for name in names if fields.get(name) is not None), logits)
    if isinstance(logits, torch.Tensor):
        return logits
    raise InvalidSetting(
        f"the module answers with a {type(out).__name__}, in which there are no logits: need a tensor (n, classes), a "
        "tuple that begins with one, or an object with .logits"
    )


def answer(module: Any, x: Any) -> Any:
    """The same as an array in double precision."""
    return _logits_of(module, x).detach().double().cpu().numpy()


def at_row(out: Any, row: int | None) -> Any:
    """Answers (n, classes): of a module that answers every row those of one."""
    if out.ndim == 3:
        out = out[:, -1 if row is None else row] if out.shape[1] > 1 else out[:, 0]
    return out.reshape(len(out), -1)


def answering(make: Callable[[], Any], row: int | None) -> Callable[[], Any]:
    """Makes modules that answer with logits (n, classes), whatever `make`'s return."""
    import torch

    class Answering(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = make()
            if not isinstance(self.inner, torch.nn.Module):
                raise InvalidSetting(f"make gives a {type(self.inner).__name__}, need a fresh torch.nn.Module")

        def forward(self, x: Any) -> Any:
            return at_row(_logits_of(self.inner, x), row)

    return Answering


def with_weights(module: Any, checkpoint: Checkpoint) -> Any:
    """The module with the tensors of a checkpoint; every parameter must be there."""
    import torch

    module = bare(module)
    names = stripped(list(checkpoint.tensors))
    state = {
        names[name]: torch.as_tensor(
            np.array(to_float(tensor.fetch(), tensor.dtype) if tensor.is_float else tensor.fetch())
        )
        for name, tensor in checkpoint.tensors.items()
    }
    back = {short: name for name, short in stripped(list(module.state_dict())).items()}
    if set(back) >= set(state):
        state = {back[name]: value for name, value in state.items()}
    module = module.double() if any(value.dtype == torch.float64 for value in state.values()) else module
    try:
        missing, unexpected = module.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise CheckpointError(
            f"{checkpoint.where} does not fit the module: {' '.join(str(error).split())[:300]}"
        ) from None
    unexpected = [name for name in unexpected if state[name].is_floating_point()]  # numbers of positions are no weights
    parameters = dict(module.named_parameters(remove_duplicate=False))
    there = {id(parameters[name]) for name in state if name in parameters}  # perhaps under another name
    lost = [f"no {name}" for name in missing if name in parameters and id(parameters[name]) not in there]
    if wrong := [*lost, *(f"{name}, which the module has not" for name in unexpected)]:
        raise CheckpointError(f"{checkpoint.where} has {wrong[0]}: it is not a checkpoint of this module")
    return module


# -- the module of a checkpoint

_LIBRARY, _NOTHING = "transformers", "none"
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
        requested: whether it was named: a model that cannot be loaded is refused then.
        why: why there is none, where there could be one.
    """

    module: Any = None
    load: Callable[[], Any] | None = None
    name: str = ""
    requested: bool = False
    why: str = ""


def find_module(path: str | Path, checkpoint: Checkpoint, choice: Any = None) -> FoundModule:
    """The module with which a checkpoint's architecture can be compared.

    Args:
        path: of the checkpoint.
        checkpoint: as it was read.
        choice: "module.py:make", a module, "transformers" (refused where it cannot be had), "none", or None for the
            default.
    """
    if choice == _NOTHING:
        return FoundModule(requested=True, why="--compare none")
    if choice is not None and choice != _LIBRARY:
        own = with_weights(_made(choice) if isinstance(choice, str) else choice, checkpoint)
        return FoundModule(own, name=called(own), requested=True)
    folder, named = find_weights_folder(Path(path)), checkpoint.config.get("architectures")
    if folder is None or not (isinstance(named, list) and len(named) == 1 and "model_type" in checkpoint.config):
        if choice is None:
            return FoundModule()
        raise InvalidSetting(
            f"the transformers library cannot load {path}: it needs a folder of save_pretrained, whose config.json "
            "names one of its classes under architectures; or --compare module.py:make"
        )
    if choice is None and checkpoint.size > MOST:
        return FoundModule(
            why=f"its {checkpoint.size:,} numbers are more than the {MOST:,} that are run by default; --compare "
            f"transformers runs them, in about {20 * checkpoint.size / 2**30:.0f} GiB"
        )
    load = partial(_loaded, folder, str(named[0]), checkpoint)
    return FoundModule(load=load, name=f"{named[0]} of transformers", requested=choice is not None)


def _made(word: str) -> Any:
    """The module that a function of a Python file makes."""
    import torch

    module = load_name(word)
    module = module() if not isinstance(module, torch.nn.Module) else module
    if not isinstance(module, torch.nn.Module):
        raise InvalidSetting(f"{word} gives a {type(module).__name__}, need a torch.nn.Module")
    return module


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
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cls = getattr(transformers, name)
            config = cls.config_class.from_pretrained(str(folder), local_files_only=True)
            with torch.device("meta"):
                empty = cls(config)
            count = sum(value.numel() for value in (*empty.parameters(), *empty.buffers()))
            if count > 2 * checkpoint.size + _SPARE:
                raise ValueError(
                    f"its config.json makes a model of {count:,} numbers, the files have {checkpoint.size:,}"
                )
            if any(name.startswith("module.") or "_orig_mod." in name for name in checkpoint.tensors):
                return with_weights(cls(config), checkpoint)  # names that the library does not know as its own
            wide = any(tensor.dtype == "float64" for tensor in checkpoint.tensors.values())
            dtype = torch.float64 if wide else torch.float32  # config.json may name a narrower type than the files have
            return cls.from_pretrained(str(folder), local_files_only=True, dtype=dtype)
    except Exception as error:
        raise NotRun(
            f"transformers {transformers.__version__} does not load {folder} as {name}: "
            f"{' '.join(str(error).split())[:200]}"
        ) from error
    finally:
        logging.set_verbosity(before[0])
        if before[1]:
            logging.enable_progress_bar()
