# The commands of daily work; `make check` is what CI runs.
.PHONY: check fix demo slow docs

check: ; .ci/run
fix: ; uv run ruff check --fix . && uv run ruff format .
demo: ; uv run medjury demo
slow: ; uv run pytest -n auto --dist worksteal -m slow && MEDJURY_TEST_DB=postgres uv run pytest -n auto --dist worksteal -m "database and not slow" tests/study tests/faults
docs: ; uv run .ci/site # in build/site
