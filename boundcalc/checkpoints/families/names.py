"""Names of tensors: what wrappers put before all of them, and tables in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boundcalc.setting.norms import place_of

_WRAPPERS = ("module.", "model.")
"""What data-parallel training and Lightning put before every name; torch.compile puts _orig_mod. anywhere."""


def stripped(names: Sequence[str], but: Sequence[str] = ()) -> dict[str, str]:
    """Names without the wrappers that all of them begin with, unless patterns of `but` begin so too."""
    wrappers = [w for w in _WRAPPERS if not any(pattern.startswith(w) for pattern in but)]
    short = [name.replace("_orig_mod.", "") for name in names]  # of parts that were compiled by themselves too
    if len(set(short)) < len(short):
        short = list(names)
    while wrapper := next((w for w in wrappers if all(name.startswith(w) and name != w for name in short)), None):
        short = [name.removeprefix(wrapper) for name in short]
    return dict(zip(names, short, strict=True))


def with_offsets(modules: Mapping[str, str]) -> dict[str, str]:
    """The tensors of modules that have both: each weight in the given role, each bias as the offset of that role."""
    pairs = ((f"{module}.weight", f"{module}.bias", role) for module, role in modules.items())
    return {name: role for weight, bias, own in pairs for name, role in ((weight, own), (bias, offset_of(own)))}


def offset_of(role: str) -> str:
    """The role of what is added after a map or a gain: b_Q of W_Q, b_readout of readout, norm_final.offset."""
    layer = role.removesuffix(".T")
    return layer.removesuffix("gain") + "offset" if layer.endswith(".gain") else f"b_{layer.removeprefix('W_')}"


def placed(role: str) -> tuple[str, int | None, int | None, bool]:
    """The kind, block and head that a role such as W_Q[0,1].T says, and whether the file holds the transpose."""
    return *place_of(role.removesuffix(".T")), role.endswith(".T")


def shortened(tensors: Mapping[str, str], depth: int) -> dict[str, str]:
    """The same with one pattern for the names of a role in every block, where only the block's number differs."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name, role in tensors.items():
        kind, block, head, turned = placed(role)
        parts = name.split(".")
        if head is None and str(block) in parts:
            parts[parts.index(str(block))] = "{b}"
            alike.setdefault((".".join(parts), kind + ".T" * turned), []).append(name)
    whole = {pair: names for pair, names in alike.items() if len(names) == depth}
    single = {name: role for name, role in tensors.items() if not any(name in names for names in whole.values())}
    return dict(iter(whole)) | single
