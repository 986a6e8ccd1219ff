"""Tutorials that run when the site is built: `{run}` executes Python, `{command}` a command line."""

from __future__ import annotations

import contextlib
import io
import shlex
import traceback
from typing import Any

from click.testing import CliRunner
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.errors import ExtensionError

from boundcalc.cli import main


class Run(Directive):
    """Python of one page, in one namespace from top to bottom; an error fails the build."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The code and what it printed."""
        environment = self.state.document.settings.env
        space = environment.temp_data.setdefault("boundcalc-run", {"__name__": "tutorial"})
        code, said = "\n".join(self.content), io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                exec(compile(code, environment.docname, "exec"), space)
        except Exception:
            raise ExtensionError(
                f"{environment.docname}, line {self.lineno}: {traceback.format_exc(limit=-1)}"
            ) from None
        return _shown(code, "python", said.getvalue())


class Command(Directive):
    """A `boundcalc` command; one that fails is no tutorial."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The command and what it printed."""
        line = " ".join(self.content)
        program, *words = shlex.split(line, comments=True)
        done = CliRunner().invoke(main, words, prog_name=program)
        if program != "boundcalc" or done.exit_code:
            raise ExtensionError(f"line {self.lineno}: `{line}` gave {done.exit_code}: {done.output[-300:]}")
        return _shown("\n".join(self.content), "sh", done.output)


def _shown(code: str, language: str, said: str) -> list[nodes.Node]:
    found: list[nodes.Node] = [nodes.literal_block(code, code, language=language)]
    if said.strip():
        table = any(line.count("  ") > 1 for line in said.splitlines())
        classes = ["said"] if table else ["said", "prose"]  # lines of a table are not wrapped
        found.append(nodes.literal_block(said, said.rstrip(), language="none", classes=classes))
    return found


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("run", Run)
    app.add_directive("command", Command)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
