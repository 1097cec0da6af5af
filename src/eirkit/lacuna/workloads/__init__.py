"""The built-in workloads; importing this package registers them."""

from eirkit.lacuna.workloads import (
    full_lookup,
    running_max,
    stepwise_max,
    stepwise_sum,
    stepwise_topk,
    store_recall,
)

__all__ = ["full_lookup", "running_max", "stepwise_max", "stepwise_sum", "stepwise_topk", "store_recall"]
