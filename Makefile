# Everything runs from a fresh clone with Python 3.11 or newer and nothing else.
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# Strict: a warning is an error. The variable silences a notice of the theme's makers.
SITE = NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

.PHONY: demo test prove check site clean

demo: .venv/.demo
	@$(BIN)/surepick demo

test: .venv/.dev
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

prove: .venv/.dev
	$(BIN)/python -m pytest -q -m "slow and not alone" -n 2 --dist worksteal -rP
	$(BIN)/python -m pytest -q -m "slow and alone" -s

check: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(SITE)

site: .venv/.dev
	$(SITE)
	@echo "The documents are in site/. Open site/index.html in a browser; no server is needed."

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[demo]"
	@touch $@

.venv/.dev: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@ .venv/.demo

clean:
	rm -rf .venv site
