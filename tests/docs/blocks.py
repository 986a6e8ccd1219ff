"""Code blocks of documents, told apart by the marks above them, and run in page order in one folder and one namespace.

A mark is a comment on a line of its own between a block and what stands before it:

    <!-- file: NAME -->               the block is a file, written before anything runs
    <!-- run -->                      what shell blocks are without a mark
    <!-- smaller: OLD => NEW -->      lines run with other words
    <!-- command: NAME -->, <!-- output: ... -->, <!-- python -->   README.md, reading.md: .ci/run and tests/readme run
    these
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from tests.tutorials.walk import run as run_line

PLAIN = ("text", "math")
"""No code. Mathematics is converted when the site is built, and what cannot be fails there."""
DIRECTIVES = ("{toctree}", "{include}", "{eval-rst}", "{thumbnails}", "{fields}", "{container}")
"""What the site is made of: a wrong one fails its build."""
AT_BUILD = ("{run}", "{command}")
"""What the site's build executes too, to show what it prints."""
_MARK = re.compile(r"<!-- ([\w ]+?)(?:: (.*?))? -->")


class Broken(AssertionError):
    """A block that does not do what a reader expects of it."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    marks: tuple[tuple[str, str], ...]

    def mark(self, name: str) -> str | None:
        return next((value for found, value in self.marks if found == name), None)

    @property
    def place(self) -> str:
        return f"{self.page}, line {self.line}"

    @property
    def lines(self) -> list[str]:
        """The commands of a shell block, as the shell sees them."""
        found = [line.strip().removeprefix("$ ") for line in self.text.replace("\\\n", " ").splitlines()]
        return [line for line in (re.sub(r"\s+# .*$", "", line) for line in found) if line and line[0] != "#"]


def blocks(page: str, text: str) -> list[Block]:
    """Every block of a page that is not prose, whether fenced or indented."""
    source, found = text.splitlines(), []
    for token in MarkdownIt("commonmark").parse(text):
        if token.type not in ("fence", "code_block"):
            continue
        assert token.map is not None
        above, marks = token.map[0] - 1, []
        while above >= 0 and (mark := _MARK.fullmatch(source[above].strip())):
            marks.insert(0, (mark[1], mark[2] or ""))
            above -= 1
        language = (token.info.split() or [""])[0] if token.type == "fence" else "indented"
        found.append(Block(page, token.map[0] + 1, language, token.content, tuple(marks)))
    return found


class Page:
    """One page, walked by its reader in an empty folder, which is the current one."""

    def __init__(self, text: str, folder: Path, name: str = "page", given: dict[str, Any] | None = None) -> None:
        self.blocks, self.folder, self.name = blocks(name, text), folder, name
        self.space: dict[str, Any] = {"__name__": name.removesuffix(".md"), **(given or {})}

    def walk(self) -> None:
        """Every block, in order; files first, as commands may name them before the page shows them."""
        for block in self.blocks:
            file = block.mark("file")
            if file is not None:
                (self.folder / file).write_text(block.text, encoding="utf-8")
        for block in self.blocks:
            try:
                self._run(block)
            except Broken:
                raise
            except (Exception, SystemExit) as error:
                raise Broken(f"{block.place}: {type(error).__name__}: {error}") from error

    def _run(self, block: Block) -> None:
        elsewhere = any(block.mark(name) is not None for name in ("command", "output", "python"))
        if elsewhere or block.language in (*PLAIN, *DIRECTIVES):
            return
        if block.mark("file") is not None:
            self._is_read(block)
        elif block.language in ("sh", "{command}"):
            for line in block.lines:
                self._line(block, line)
        elif block.language in ("python", "{run}"):
            exec(compile(block.text, block.place, "exec"), self.space)
        else:
            raise Broken(
                f"{block.place}: a block of {block.language!r} that nothing runs: mark it, or say its language"
            )

    def _is_read(self, block: Block) -> None:
        """A file is read by a command, or imported by another file."""
        name = block.mark("file") or ""
        others = [other.text for other in self.blocks if other is not block]
        if not any(re.search(rf"\b{re.escape(name)}\b|from {Path(name).stem} import", text) for text in others):
            raise Broken(f"{block.place}: nothing on the page reads {name}")

    def _line(self, block: Block, line: str) -> None:
        for kind, value in block.marks:
            if kind == "smaller":
                old, _, new = value.partition(" => ")
                line = line.replace(old, new)
        program = shlex.split(line)[0]
        if program not in ("boundcalc", "python"):
            raise Broken(f"{block.place}: {program!r} is no program that is run here")
        run_line(line, self.folder)


def unused_marks(page: Page) -> Iterator[str]:
    """Marks that say nothing: of a kind that is not known, or `smaller` for a line that is not there."""
    known = {"file", "run", "smaller", "command", "output", "python"}
    for block in page.blocks:
        for kind, value in block.marks:
            if kind not in known or (kind == "smaller" and value.partition(" => ")[0] not in " ".join(block.lines)):
                yield f"{block.place}: <!-- {kind}: {value} -->"
