"""Draws the two figures of docs/findings.md as deterministic SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

INK, COOL, WARM = "#1f2933", "#2b6cb0", "#c05621"


STYLE = {"svg.hashsalt": "eirkit", "svg.fonttype": "none", "font.size": 10, "text.color": INK}


@contextmanager
def _styled() -> Iterator[Any]:
    """Give pyplot with the style of these figures, and the style of others back."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        yield plt


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white", bbox_inches="tight")


def draw_attention(shares: Mapping[str, NDArray[np.float64]], path: Path) -> None:
    """Draw mean shares of attention, one panel a kind of key, layers by heads."""
    with _styled() as plt:
        figure, axes = plt.subplots(1, len(shares), figsize=(9, 3.6), layout="constrained", sharey=True)
        for axis, (name, values) in zip(axes, shares.items(), strict=True):
            axis.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
            for (layer, head), value in np.ndenumerate(values):
                axis.text(head, layer, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else INK)
            axis.set_title(f"on the {name}" if name.startswith("ref") else f"on {name}", fontsize=9.5)
            axis.set_xticks(range(values.shape[1]), [str(head + 1) for head in range(values.shape[1])])
            axis.set_yticks(range(values.shape[0]), [str(layer + 1) for layer in range(values.shape[0])])
            axis.set_xlabel("head")
        axes[0].set_ylabel("layer")
        _save(figure, path)
        plt.close(figure)


def draw_substitution(account: Mapping[str, Any], path: Path) -> None:
    """Draw how well each rule foretells the value in the place of a missing one, and who gets the attention."""
    with _styled() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", width_ratios=(3, 2))
        rules = account["rules"]
        for row, one in enumerate(rules.values()):
            left.barh(row, one["estimate"], color=COOL, height=0.6)
            left.plot([one["low"], one["high"]], [row, row], color=INK, linewidth=1.4)
            left.text(one["high"] + 0.012, row, f"{one['estimate']:.2f}", va="center")
        left.set_yticks(range(len(rules)), list(rules))
        left.invert_yaxis()
        left.set_xlim(0, 1)
        left.set_xlabel("substitutes foretold whole\n(share, 95% interval)")
        kinds = account["by likeness"]
        for place, (key, color) in enumerate((("share", COOL), ("copied", WARM))):
            heights = [kind[key] for kind in kinds.values()]
            spots = np.arange(len(kinds)) + (place - 0.5) * 0.38
            bars = right.bar(spots, heights, 0.36, color=color, label={"share": "attention", "copied": "copied"}[key])
            right.bar_label(bars, fmt="%.2f", fontsize=8.5)
        right.set_xticks(range(len(kinds)), list(kinds))
        right.set_xlabel("what a record's label\nshares with the missing one")
        right.set_ylim(0, 1.4 * max(max(kind["share"], kind["copied"]) for kind in kinds.values()))
        right.legend(frameon=False, loc="upper right")
        for axis in (left, right):
            axis.spines[["top", "right"]].set_visible(False)
        _save(figure, path)
        plt.close(figure)
