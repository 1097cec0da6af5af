"""Generated tasks with known dependencies: workloads, retention policies, simulation without agents, recovery cones."""

# Built-in policies and workloads with the module that defines them, which is imported on first use.
POLICIES = dict.fromkeys(
    ("belady", "fifo", "fixed", "learned", "lfu", "lru", "random", "theory", "unbounded", "window"),
    "eirkit.lacuna.tasks.policies",
)
FORESIGHT = ("belady",)  # of these, policies that know the references in advance
CONVERSATIONS = {
    "conversation": "eirkit.lacuna.conversation.workload",
    "words": "eirkit.lacuna.conversation.workload",  # another spelling
    "instructions": "eirkit.lacuna.conversation.workload",
    "longmemeval": "eirkit.lacuna.conversation.labeled",
    "meme": "eirkit.lacuna.conversation.labeled",
}
WORKLOADS = {
    "full-lookup": "eirkit.lacuna.tasks.workloads",
    "record-store": "eirkit.lacuna.tasks.records",
    "running-max": "eirkit.lacuna.tasks.maxima",
    "stepwise-max": "eirkit.lacuna.tasks.maxima",
    "stepwise-sum": "eirkit.lacuna.tasks.workloads",
    "stepwise-topk": "eirkit.lacuna.tasks.maxima",
    "store-recall": "eirkit.lacuna.tasks.workloads",
}
