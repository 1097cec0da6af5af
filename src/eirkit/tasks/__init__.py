"""Generated tasks with known dependencies: workloads, retention policies, simulation without agents, recovery cones."""

# Built-in policies and workloads with the module that defines them, which is imported on first use.
POLICIES = dict.fromkeys(
    ("belady", "fifo", "fixed", "learned", "lfu", "lru", "random", "theory", "unbounded", "window"),
    "eirkit.tasks.policies",
)
CONVERSATIONS = {
    "words": "eirkit.tasks.conversations",
    "instructions": "eirkit.tasks.conversations",
    "longmemeval": "eirkit.tasks.labelled",
    "meme": "eirkit.tasks.labelled",
}
WORKLOADS = {
    "full-lookup": "eirkit.tasks.workloads",
    "running-max": "eirkit.tasks.maxima",
    "stepwise-max": "eirkit.tasks.maxima",
    "stepwise-sum": "eirkit.tasks.workloads",
    "stepwise-topk": "eirkit.tasks.maxima",
    "store-recall": "eirkit.tasks.workloads",
}
