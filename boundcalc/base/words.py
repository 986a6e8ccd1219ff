"""One vocabulary: what a name that is not known may have been meant for, and what names that are gone are called now.

Beside the spellings of a name, which are accepted, there are *synonyms*: another library's or another paper's word. They
are not accepted, but whoever types one is told the word that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from boundcalc.base.spelling import spelling

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "n": ("n_train", "m"),
    "samples": ("n_train", "m"),
    "n_samples": ("n_train", "m"),
    "context": ("seq_len", "T"),
    "block_size": ("seq_len", "T"),
    "length": ("seq_len", "T"),
    "max_length": ("seq_len", "T"),
    "D": ("depth",),
    "L": ("lipschitz", "depth"),
    "blocks": ("depth",),
    "layers": ("depth",),
    "n_layer": ("depth",),
    "n_layers": ("depth",),
    "num_layers": ("depth",),
    "num_hidden_layers": ("depth",),
    "H": ("heads",),
    "n_head": ("heads",),
    "n_heads": ("heads",),
    "num_heads": ("heads",),
    "num_attention_heads": ("heads",),
    "width": ("d",),
    "hidden_size": ("d",),
    "d_model": ("d",),
    "n_embd": ("d",),
    "embed_dim": ("d",),
    "intermediate_size": ("d_ff",),
    "ffn_dim": ("d_ff",),
    "head_dim": ("d_head",),
    "num_key_value_heads": ("kv_heads",),
    "K": ("classes",),
    "n_classes": ("classes",),
    "num_classes": ("classes",),
    "num_labels": ("classes",),
    "vocab_size": ("vocabulary",),
    "vocab": ("vocabulary",),
    "confidence": ("delta",),
    "ramp": ("margin", "gamma"),
    "pooling": ("readout",),
    "learning_rate": ("lr",),
    "batch_size": ("batch",),
    "epochs": ("steps",),
    "architecture": ("preset",),
    "model": ("preset",),
    "architecture_style": ("style",),
    "theorem": ("bound",),
    "policy": ("bound",),
    "file": ("out",),
    "outfile": ("out",),
    "output_file": ("out",),
    "grid": ("sweep",),
    "axis": ("sweep",),
    "spectral": ("op",),
    "frobenius": ("F",),
    "fro": ("F",),
    "two_one": ("21",),
    "two_one_t": ("21T",),
    "one_one": ("11",),
    "schatten": ("Sp",),
    "swish": ("silu",),
    "swiglu": ("silu",),
    "gelu_new": ("gelu_tanh",),
    "gelu_pytorch_tanh": ("gelu_tanh",),
    "gelu_fast": ("gelu_tanh",),
    "prenorm": ("pre",),
    "pre_ln": ("pre",),
    "postnorm": ("post",),
    "post_ln": ("post",),
    "layer_norm": ("layernorm",),
    "ln": ("layernorm",),
    "rms_norm": ("rmsnorm",),
    "projection": ("ball",),
    "absolute": ("learned",),
    "sinusoidal": ("fixed",),
    "rotary": ("rope",),
    "first": ("cls",),
    "average": ("mean",),
}
"""What a name is called elsewhere: in papers, in other libraries, in everyday words."""

FORMER: Mapping[str, Mapping[str, str]] = {
    "bound": {"edelman": "log-T"},
    "preset": {"edelman2022": "edelman"},
}
"""Names that are gone, by what they named, and the names that took their place."""


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """The known name that an unknown one was most likely meant for."""
    from difflib import get_close_matches  # only errors need it, and it takes as long to import as a bound takes

    names = list(known)
    plain = {word.lower().replace("-", "_"): word for word in reversed(names)}
    asked = name.lower().replace("-", "_")
    for word in (spelling(name, names), spelling(name.replace("-", "_"), names), plain.get(asked)):
        if word in names:
            return word
    for synonym in (*_SYNONYMS.get(name, ()), *_SYNONYMS.get(name.replace("-", "_"), ()), *_SYNONYMS.get(asked, ())):
        found = synonym if synonym in names else plain.get(synonym.lower())
        if found is not None:
            return found
    close = get_close_matches(name, names, n=1) or get_close_matches(asked, plain, n=1)
    return plain.get(close[0], close[0]) if close else None


def hint(name: str, known: Iterable[str], what: str = "") -> str:
    """The end of a message about an unknown name: what it is called now, or what it may have been meant for."""
    now = FORMER.get(what, {}).get(name)
    if now is not None:
        return f"; {name!r} is now {now!r}"
    near = suggestion(name, known)
    return f"; did you mean {near!r}?" if near else ""
