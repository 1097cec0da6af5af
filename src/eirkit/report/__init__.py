"""Documents, tables, charts and HTML pages that present results; every figure can be recomputed from the records."""

# Modules that build the page of each kind of folder, and those that compare two folders; imported on first use.
PAGES = {
    "demo": "eirkit.report.demo.page",
    "lacuna-evidence": "eirkit.report.runs.evidence",
    "lacuna-run": "eirkit.report.runs.page",
    "vestige-analysis": "eirkit.report.logs.page",
}
COMPARERS = {
    "lacuna-run": "eirkit.report.runs.comparison",
    "vestige-analysis": "eirkit.report.logs.analysed",
}
# Modules that render a document in a form of their own; imported when a document is printed in it.
RENDERERS = {"html": "eirkit.report.html"}
