"""Who makes the page of a folder and who compares two, by kind: imported when such a folder is shown."""

PLUGINS = {
    "demo": "eirkit.demo.folder",
    "lacuna-evidence": "eirkit.show.pages.evidence",
    "lacuna-run": "eirkit.show.pages.sweep",
    "reproduction": "eirkit.paper.page",
    "vestige-analysis": "eirkit.show.pages.analysis",
}
COMPARERS = {
    "lacuna-run": "eirkit.show.pages.sweep",
    "vestige-analysis": "eirkit.show.pages.analysis",
}
