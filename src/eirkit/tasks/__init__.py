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
WORKLOADS = dict.fromkeys(
    ("full-lookup", "running-max", "stepwise-max", "stepwise-sum", "stepwise-topk", "store-recall"),
    "eirkit.tasks.workloads",
)
