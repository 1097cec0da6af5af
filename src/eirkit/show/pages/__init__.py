"""Tables of the modules that build the page of each kind of folder, and of those that compare two folders."""

PLUGINS = {
    "demo": "eirkit.demo.page",
    "lacuna-evidence": "eirkit.show.pages.evidence",
    "lacuna-run": "eirkit.show.pages.sweep",
    "reproduction": "eirkit.paper.page",
    "vestige-analysis": "eirkit.show.pages.analysis",
}
COMPARERS = {
    "lacuna-run": "eirkit.show.pages.sweep",
    "vestige-analysis": "eirkit.show.pages.analysis",
}
