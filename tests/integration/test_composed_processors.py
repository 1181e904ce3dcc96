"""Processors among steps of every kind, in the test driver's machine: what they give is what a plain model says.

Each class keeps something, forwards under keys and times of its own or to outputs, or is called by stream time. All
pairs of them with other kinds are among those of test_composed_steps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from shared_cases import batches
from steps_model import Model
from topologies_made import PROCESSED, Chain, Made, add_chain, cuts_of, records_for
from topologies_played import Application, differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

RECORDS = 120
OF_PROCESSORS: Sequence[Chain] = (
    ("process sweeps", "tumbling", "suppress", "keyBy text", "process windows", "session"),
    ("process columns", "process sessions", "tumbling closed", "toStream"),
    ("process resets", "hopping closed", "toStream", "keyBy number", "process outputs keys", "process counts"),
    ("process outputs", "dedupe", "process keys", "left join table"),
    ("process batches", "session", "toStream", "keyBy text", "toTable"),
)
"""Every class, before state of every kind: in one task with it, and behind a repartition topic."""


def test_processors_give_what_their_model_says_and_so_does_what_follows_them(spark: SparkSession) -> None:
    assert {kind for chain in OF_PROCESSORS for kind in chain} >= PROCESSED.keys()
    together, source = Made("string"), random.Random(1)
    for chain in OF_PROCESSORS:
        add_chain(together, "stream", chain)
    document = together.document
    records, cuts = records_for(document, source, RECORDS), cuts_of(source, RECORDS)[:2]
    model = Model(document)
    for first, end in batches(len(records), cuts):
        model.feed(records[first:end])
    assert differences(model, Application(spark, document).run(records, cuts)) == []
    assert all(len(rows) > 10 for rows in model.sinks.values()), "too little comes of the records to see anything"
