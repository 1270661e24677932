# The commands of daily work; `make check` is what CI runs.
.PHONY: check fix demo slow pins

check: ; .ci/run
fix: ; uv run ruff check --fix . && uv run ruff format .
demo: ; uv run medjury demo
slow: ; uv run pytest -m slow
pins: ; .ci/pin && uv sync
