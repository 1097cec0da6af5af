"""How `make docs` builds the site: Sphinx over the same Markdown files that one reads in the repository.

The source folder is the root, since pages link to README and CONTRIBUTING. The order of pages is that of the links in
an index, so that no page has a list of its own that can go stale.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

project = "eirkit"
author = "the eirkit authors"
project_copyright = author
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**.md"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "eirkit"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_last_updated_fmt = None
nitpicky = True

INDICES = ("docs/index", "docs/design/README")
LINK = re.compile(r"^\| \[[^\]]+\]\(([^)#\s]+\.md)\) \|", re.MULTILINE)


def add_order(app: Sphinx, page: str, source: list[str]) -> None:
    """Give an index a hidden table of contents: the pages in its first column, in their order."""
    if page in INDICES:
        pages = LINK.findall(source[0])
        if not pages:
            raise ValueError(f"{page}.md links to no page in the first column of its table; add `| [Name](page.md) |`")
        source[0] += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_order)
