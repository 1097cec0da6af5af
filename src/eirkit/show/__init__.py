"""Documents, tables, charts and HTML pages that present results; every figure can be recomputed from the records."""

# Modules that build the page of each kind of folder, and those that compare two folders; imported on first use.
PAGES = {
    "compaction-benchmark": "eirkit.show.logs.compactors",
    "demo": "eirkit.demo.page",
    "lacuna-evidence": "eirkit.show.runs.evidence",
    "lacuna-run": "eirkit.show.runs.page",
    "reproduction": "eirkit.paper.page",
    "vestige-analysis": "eirkit.show.logs.page",
}
COMPARERS = {
    "lacuna-run": "eirkit.show.runs.comparison",
    "vestige-analysis": "eirkit.show.logs.analysed",
}
# Modules that render a document in a form of their own; imported when a document is printed in it.
RENDERERS = {"html": "eirkit.show.html"}
