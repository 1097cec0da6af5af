"""The metadata of an archive, read by ML Croissant's own library; `make session NAME=reproduce` installs it."""

from __future__ import annotations

import csv
import json

import pytest

from eirkit.cli import run

mlcroissant = pytest.importorskip("mlcroissant", reason="make session NAME=reproduce installs it")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a library that it uses
def test_the_validator_reads_what_the_archive_describes(tmp_path, capsys):
    words = ["reproduce", "rescue", "--model", "reference/guesser", "--out", str(tmp_path), "--workers", "1", "--json"]
    assert run(words) == 0
    printed = [row for study in json.loads(capsys.readouterr().out)["studies"] for row in study["rows"]]
    described = mlcroissant.Dataset(jsonld=tmp_path / "croissant.json")
    assert not described.metadata.issues.errors
    records = list(described.records("figures"))
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        assert len(records) == len(list(csv.DictReader(file))) == len(printed)
    assert [record["figures/published"] for record in records] == [row["published"] for row in printed]
