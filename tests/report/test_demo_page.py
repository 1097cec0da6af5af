"""The page of `eirkit demo` from given figures: what it says agrees with its table, in the table's words."""

from eirkit.report.demo.figures import RetentionRow
from eirkit.report.demo.page import retention_section

SAMPLE = RetentionRow(
    "stepwise-sum", 8, 2.0, 30, {"fifo": 0.625, "lru": 0.66, "theory": 0.64, "belady": 0.5}, online_miss_rate=0.643
)
ROWS = (SAMPLE, RetentionRow("store-recall", 8, 1.0, 30, dict.fromkeys(SAMPLE.miss_rate, 0.0)))


def test_a_sample_may_fall_below_the_best_expected_miss_rate_and_the_page_says_so():
    section = retention_section(ROWS)
    row, _ = section.items[1].rows
    assert row["fifo"] < row["online_miss_rate"]
    (told,) = section.words
    assert "Best online is an expectation" in told
    assert "misses less in the mean" not in told


def test_the_legend_calls_policies_as_the_table_does():
    chart, table = retention_section(ROWS).items
    names = {column.title for column in table.columns}
    assert {series.name for series in chart.series} <= names
    assert "theory" not in names
