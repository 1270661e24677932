"""What is asked of juries: chosen from what the study has, and kept in the URL."""

from typing import get_args

import streamlit as st
from sqlalchemy import Engine

from annotate.figures.juries import MOST
from annotate.screens.agreement_controls import METHODS, benchmark_and_criterion, chosen
from calibration.values import AnalysisOptions
from data.person import Person
from medjury.services.juries import Pool, RankingQuestion

POOLS, RESPONSES = get_args(Pool), ("own", "common")
SIZES = {
    "1-5": None,
    "1-2": range(1, 3),
    "1-3": range(1, 4),
    **{f"{size}": range(size, size + 1) for size in range(1, 6)},
}


def asked(engine: Engine, person: Person) -> RankingQuestion:
    """Ask what the ranking of juries takes; it has no panels, and all references count."""
    places = st.container(key="controls").columns((3, 3, 2, 2, 2, 2))
    own = places[0], places[0], places[1]
    benchmark, criterion = benchmark_and_criterion(engine, person, own)
    method = chosen(places[2], "Method", METHODS, "method")
    sizes = chosen(places[3], "Jurors in a jury", [*SIZES], "sizes")
    pool = chosen(places[4], "Pooled by", POOLS, "pool")
    responses = chosen(places[5], "Responses", RESPONSES, "responses")
    options = AnalysisOptions(
        benchmark=benchmark,
        criterion=criterion,
        method="published" if method == "published" else "paper",
    )
    common = responses == RESPONSES[1]
    return RankingQuestion(options, SIZES[sizes], pool, common, MOST)  # type: ignore[arg-type]  # one of POOLS
