"""Tests that train are skipped where torch is not installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Two threads beside another busy process are slower than one."""
    if HAS_TORCH:
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(before)
    else:
        yield
