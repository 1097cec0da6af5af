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
    "vestige-analysis": "eirkit.report.logs.analyzed",
}
# Modules that render a document or a part of it in a form of their own; imported when it is asked for.
RENDERERS = {"figures": "eirkit.report.drawing", "html": "eirkit.report.html", "latex": "eirkit.report.latex"}
