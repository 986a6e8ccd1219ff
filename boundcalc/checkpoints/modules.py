"""Torch modules at hand: found, given the weights of a file, and run in double precision.

Torch is imported only here.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from boundcalc.base import project
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.load import load_name
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.names import stripped
from boundcalc.checkpoints.readers import Checkpoint


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


def of_double(module: Any) -> Any:
    """A copy in evaluation mode and double precision, without fused attention; the module itself stays as it is."""
    found = copy.deepcopy(bare(module)).double().cpu().eval()
    config = getattr(found, "config", None)
    if config is not None and hasattr(config, "_attn_implementation"):
        if hasattr(found, "set_attn_implementation"):
            found.set_attn_implementation("eager")
        else:
            config._attn_implementation = "eager"
    return found


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

_POOLED = ("siglip_text_model", "siglip_vision_model")
"""Types of models whose read-out is part of the tower."""


def logits_of(module: Any, x: Any, call: Callable[[Any, Any], Any] | None = None) -> Any:
    """What a module answers to a batch: its logits, or the first tensor of what it returns."""
    import torch

    out = module(x) if call is None else call(module, x)
    found = out[0] if isinstance(out, tuple | list) and not hasattr(out, "_fields") else out
    kind = getattr(getattr(bare(module), "config", None), "model_type", "")
    for name in ("pooler_output",) if kind in _POOLED else _ANSWERS:
        if isinstance(out, dict) and name in out:
            found = out[name]
            break
        if hasattr(out, name):
            found = getattr(out, name)
            break
    if isinstance(found, torch.Tensor):
        return found
    raise InvalidSetting(
        f"the module answers with a {type(out).__name__}, in which there are no logits: need a tensor (n, classes), a "
        "tuple that begins with one, or an object with .logits; or say call=lambda module, x: ..."
    )


def answer(module: Any, x: Any, call: Callable[[Any, Any], Any] | None = None) -> Any:
    """The same as an array in double precision."""
    return logits_of(module, x, call).detach().double().cpu().numpy()


def at_row(out: Any, row: int | None) -> Any:
    """Answers (n, classes): of a module that answers every row those of one."""
    if out.ndim == 3:
        out = out[:, -1 if row is None else row] if out.shape[1] > 1 else out[:, 0]
    return out.reshape(len(out), -1)


def answering(make: Callable[[], Any], row: int | None, call: Callable[[Any, Any], Any] | None) -> Callable[[], Any]:
    """Makes modules that answer with logits (n, classes), whatever `make`'s return."""
    import torch

    class Answering(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = make()
            if not isinstance(self.inner, torch.nn.Module):
                raise InvalidSetting(f"make gives a {type(self.inner).__name__}, need a fresh torch.nn.Module")

        def forward(self, x: Any) -> Any:
            return at_row(logits_of(self.inner, x, call), row)

    return Answering


def made_by(word: str, checkpoint: Checkpoint) -> Any:
    """The module that a function of a Python file makes, with the weights of a checkpoint."""
    try:
        import torch
    except ModuleNotFoundError:
        raise InvalidSetting(f"comparing with a module needs torch: {project.install('train')}") from None
    module = load_name(word)
    module = module() if not isinstance(module, torch.nn.Module) else module
    if not isinstance(module, torch.nn.Module):
        raise InvalidSetting(f"{word} gives a {type(module).__name__}, need a torch.nn.Module")
    return with_weights(module, checkpoint)


def with_weights(module: Any, checkpoint: Checkpoint) -> Any:
    """The module with the tensors of a checkpoint; every parameter must be there."""
    import torch

    from boundcalc.checkpoints.decode import to_float

    module = bare(module)
    names = stripped(list(checkpoint.tensors))
    state = {
        names[name]: torch.as_tensor(
            np.array(to_float(tensor.fetch(), tensor.dtype) if tensor.is_float else tensor.fetch())
        )
        for name, tensor in checkpoint.tensors.items()
    }
    own = module.state_dict()
    if set(state) != set(own) and set(stripped(list(own)).values()) >= set(state):
        back = {short: name for name, short in stripped(list(own)).items()}
        state = {back[name]: value for name, value in state.items()}
    wider = any(value.dtype == torch.float64 for value in state.values())
    module = module.double() if wider else module
    try:
        missing, unexpected = module.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise CheckpointError(
            f"{checkpoint.where} does not fit the module: {' '.join(str(error).split())[:300]}"
        ) from None
    unexpected = [name for name in unexpected if state[name].is_floating_point()]  # numbers of positions are no weights
    wanted = {name for name, _ in module.named_parameters()}
    lost = [name for name in missing if name in wanted and not _tied(module, name, state)]
    if lost or unexpected:
        word = f"has no {lost[0]}" if lost else f"has {unexpected[0]}, which the module has not"
        raise CheckpointError(f"{checkpoint.where} {word}: it is not a checkpoint of this module")
    return module


def _tied(module: Any, name: str, state: dict[str, Any]) -> bool:
    """Whether a parameter that the file lacks is one that it has, under another name."""
    own = dict(module.named_parameters(remove_duplicate=False))
    return any(other in state and own[other] is own[name] for other in own if other != name)
