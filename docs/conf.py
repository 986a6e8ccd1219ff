"""The site: `sphinx-build -W docs build-docs` after `pip install '.[docs]'`. Pages open without network."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_site"))
os.environ["COLUMNS"] = "100"  # of what the tutorial's commands print

project = "boundcalc"
author = "boundcalc authors"
project_copyright = author
release = metadata.version("boundcalc")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "run",
    "theory_pages",
    "linked",
    "thumbnails",
    "accessible",
    "embedded",
    "fields",
]
exclude_patterns = ["_site", "theory.md"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
myst_fence_as_directive = ["math"]
suppress_warnings = ["myst.strikethrough", "misc.highlighting_failure"]  # such as a block of CSV
html_theme = "furo"
html_title = f"boundcalc {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_site/static"]
html_css_files = ["boundcalc.css"]
html_favicon = "_site/static/favicon.svg"
html_extra_path = ["results.schema.json"]
highlight_language = "none"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_use_ivar = True  # attributes in one list
toc_object_entries = False  # headings name what a page documents
