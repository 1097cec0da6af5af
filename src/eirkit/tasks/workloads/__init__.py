"""The built-in workloads: a table of names and modules, imported on first use."""

PLUGINS = {
    "full-lookup": "eirkit.tasks.workloads.full_lookup",
    "running-max": "eirkit.tasks.workloads.running_max",
    "stepwise-max": "eirkit.tasks.workloads.stepwise_max",
    "stepwise-sum": "eirkit.tasks.workloads.stepwise_sum",
    "stepwise-topk": "eirkit.tasks.workloads.stepwise_topk",
    "store-recall": "eirkit.tasks.workloads.store_recall",
}
