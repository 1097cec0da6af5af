"""Cluster-robust covariance (CR1): scores summed by cluster between two slices of inverse information."""

from __future__ import annotations

import numpy as np

from eirkit.vestige.inference.ascent import invert
from eirkit.vestige.inference.design import Codes, Floats, group_sums

FEW_CLUSTERS = 30  # below it normal intervals from cluster-robust errors are known to be too short


def cluster_robust(information: Floats, scores: Floats, codes: Codes, parameters: int) -> Floats:
    """Return the covariance with the factor G/(G−1) · (n−1)/(n−k).

    Args:
        scores: rows × coefficients, the gradient of each row's log-likelihood.
        codes: clusters 0 … G−1, none empty.
        parameters: k, absorbed effects included.
    """
    sums = group_sums(scores, codes)
    rows, clusters = len(scores), len(sums)
    factor = clusters / (clusters - 1) * (rows - 1) / max(1, rows - parameters)
    bread = invert(information)
    covariance: Floats = factor * bread @ (sums.T @ sums) @ bread
    return covariance


def standard_errors(covariance: Floats) -> Floats:
    """Return the square roots of the diagonal."""
    errors: Floats = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return errors


def few_clusters_note(clusters: int) -> str:
    """Return a warning where clusters are few, else nothing."""
    if clusters >= FEW_CLUSTERS:
        return ""
    return f"only {clusters} clusters, so the interval is likely too short"
