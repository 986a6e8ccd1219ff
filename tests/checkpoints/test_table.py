"""The table of families in docs/weights.md is what forward checks give."""

from __future__ import annotations

import pytest

from tests.checkpoints.live import torch
from tests.checkpoints.table import rows, shown

pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_table_of_families_is_that_of_the_forward_checks() -> None:
    """Refresh it by `python -m tests.checkpoints.table`."""
    assert torch is not None
    assert shown() == "\n".join(rows()) + "\n"
