"""The README as a package index shows it: its links are relative here, and would be broken there.

`pyproject.toml` names this file as its metadata hook. With `Source = "..."` under `[project.urls]`, the one place for
addresses, every relative link and image of the README points into that repository; without it the text stays as it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # only who builds needs it; the function below is tested without
    MetadataHookInterface = object

_LINK = re.compile(r"(?P<image>!?)\[(?P<words>[^\]]*)\]\((?P<to>(?!https?:|#|mailto:)[^)\s]+)\)")


def absolute(text: str, source: str | None) -> str:
    """The text with relative links made absolute; images as files, everything else as pages."""
    if not source:
        return text
    root = source.rstrip("/")

    def put(found: re.Match[str]) -> str:
        kind = "raw" if found["image"] else "tree" if "." not in Path(found["to"]).name else "blob"
        return f"{found['image']}[{found['words']}]({root}/{kind}/HEAD/{found['to']})"

    return _LINK.sub(put, text)


class PackagePage(MetadataHookInterface):
    """Hatchling asks it for what the project table leaves open."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the readme."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        page = absolute(text, metadata.get("urls", {}).get("Source"))
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
