# The commands of daily work; `make check` is what CI runs.
.PHONY: check fix demo slow evidence quick words fuzz pins audit docs

EVIDENCE = simulated_effects population reliability crossed like_for_like non_inferiority detection subgroups \
	false_alarms icc_difference choosing edges conformal icc real_data

check: ; .ci/run
fix: ; uv run ruff check --fix . && uv run ruff format .
demo: ; uv run medjury demo
quick: ; uv run pytest -m quick -n 2 --dist loadfile
slow: ; uv run pytest -m slow
evidence: ; uv run pytest -m "slow or not slow" $(addprefix tests/test_,$(addsuffix .py,$(EVIDENCE)))
words: ; PYTHONPATH=tests:. uv run python -m kit.demo_words
fuzz: ; PYTHONPATH=tests:. uv run python -m kit.fuzz.each $(or $(SECONDS),180) $(READERS)
pins: ; .ci/pin && uv sync
audit: ; uv run .ci/audit
docs: ; uv run .ci/sbom docs/sbom.json && uv run .ci/site # CycloneDX: what is installed here; the site, in build/site
