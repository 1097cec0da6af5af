"""The built-in workloads: name and module, imported when the name is first used."""

PLUGINS = {
    "full-lookup": "eirkit.tasks.workloads.full_lookup",
    "running-max": "eirkit.tasks.workloads.running_max",
    "stepwise-max": "eirkit.tasks.workloads.stepwise_max",
    "stepwise-sum": "eirkit.tasks.workloads.stepwise_sum",
    "stepwise-topk": "eirkit.tasks.workloads.stepwise_topk",
    "store-recall": "eirkit.tasks.workloads.store_recall",
}
