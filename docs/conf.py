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
extensions = ["myst_parser", "sphinx_copybutton"]
copybutton_prompt_text = "$ "  # is not copied
copybutton_only_copy_prompt_lines = True
root_doc = "docs/index"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**.md", "build/reference/*.md"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "eirkit"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_last_updated_fmt = None
nitpicky = True

# The viewer with example folders and the board of the studies, made by tools/examples.py and tools/board.py before the
# build; on disk there is nothing to link to.
html_extra_path = ["../build/extra"]
TRY_IT = (
    '<p><a href="../viewer/index.html">Click through three example folders in the viewer</a>, without installing '
    "anything: a sweep over conversations, a rescue, and a recorded coding session with a compaction.</p>"
)

BOARD = '<p><a href="../board/index.html">Open the board of the memories in our studies</a>.</p>'
# By page: the heading before which a link to what was made is added, and the link.
MADE = {
    "docs/index": ("## Start here", TRY_IT),
    "docs/reports": ("### Sweeps and cohorts", TRY_IT),
    "docs/board": ("## What a submission holds", BOARD),
}

INDICES = ("docs/index", "docs/design/README")
LINK = re.compile(r"^\| \[[^\]]+\]\(([^)#\s]+\.md)\) \|", re.MULTILINE)
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
# Made by tools/reference.py before the build, so no page of the repository links to them.
REFERENCE = (
    "Reference",
    [f"../build/reference/{name}.md" for name in ("commands", "api", "tables", "glossary")],
)


def add_order(app: Sphinx, page: str, source: list[str]) -> None:
    """Give an index hidden tables of contents, one for each section: the pages in the first column, in their order."""
    if page not in INDICES:
        return
    first, *parts = SECTION.split(source[0])
    named = zip(parts[::2], parts[1::2], strict=True)
    sections = [("", LINK.findall(first)), *((name, LINK.findall(text)) for name, text in named)]
    if not any(pages for _, pages in sections):
        raise ValueError(f"{page}.md links to no page in the first column of its table; add `| [Name](page.md) |`")
    sections += [REFERENCE] if page == root_doc else []
    for name, pages in sections:
        if pages:
            caption = f":caption: {name}\n" if name and page == root_doc else ""
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n"


def add_made(app: Sphinx, page: str, source: list[str]) -> None:
    """Link to the examples and the board from the pages that lead to them."""
    if page in MADE:
        wanted, link = MADE[page]
        before, heading, after = source[0].partition(wanted)
        if not heading:
            raise ValueError(f"{page}.md has no {wanted!r}, before which a link is added")
        source[0] = f"{before}{link}\n\n{heading}{after}"


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_made)
    app.connect("source-read", add_order)
