# The commands of daily work; `make check` is what CI runs.
.PHONY: check fix demo slow fuzz pins

check: ; .ci/run
fix: ; uv run ruff check --fix . && uv run ruff format .
demo: ; uv run medjury demo
slow: ; uv run pytest -m slow
fuzz: ; PYTHONPATH=tests:. uv run python -m fuzz.each $(or $(SECONDS),180) $(READERS)
pins: ; .ci/pin && uv sync
