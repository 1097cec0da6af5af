"""The built-in retention policies: a table of names and modules, imported on first use."""

PLUGINS = {
    "belady": "eirkit.tasks.policies.belady",
    "fifo": "eirkit.tasks.policies.fifo",
    "fixed": "eirkit.tasks.policies.fixed",
    "learned": "eirkit.tasks.policies.learned",
    "lfu": "eirkit.tasks.policies.lfu",
    "lru": "eirkit.tasks.policies.lru",
    "random": "eirkit.tasks.policies.random_choice",
    "theory": "eirkit.tasks.policies.theory",
    "unbounded": "eirkit.tasks.policies.unbounded",
    "window": "eirkit.tasks.policies.window",
}
