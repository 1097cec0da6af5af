"""The pages of folders, one file a kind; importing this registers them."""

from eirkit.report.pages import analysis, demo, evidence, reproduction, sweep

__all__ = ["analysis", "demo", "evidence", "reproduction", "sweep"]
