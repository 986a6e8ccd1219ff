"""No types: its sources are thousands of files, which pyright would read to infer some."""

from typing import Any

def __getattr__(name: str) -> Any: ...
