"""The built-in model providers: a table of names and modules, imported on first use."""

PLUGINS = {
    "agent": "eirkit.agents.models.hosted",
    "anthropic": "eirkit.agents.models.hosted",
    "bundled": "eirkit.agents.models.bundled",
    "google": "eirkit.agents.models.hosted",
    "inspect": "eirkit.agents.models.inspect_ai",
    "local": "eirkit.agents.models.local",
    "openai": "eirkit.agents.models.hosted",
    "reference": "eirkit.agents.models.reference",
    "replay": "eirkit.agents.models.replay",
    "scripted": "eirkit.agents.models.scripted",
}
