# Everything runs from a fresh clone with Python 3.11 or newer and nothing else.
PYTHON ?= python3
BIN := .venv/bin
PROJECTS := $(wildcard packages/*/pyproject.toml)
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
unexport PYTHONDONTWRITEBYTECODE # else every process, the tests' own among them, compiles surepick and its tests anew

# Tests of what is installed: no torch, no server, no database but SQLite.
SMOKE := tests/core tests/designs tests/estimators tests/environments tests/linalg tests/tables tests/test_noise.py \
	tests/test_questions.py --ignore=tests/estimators/test_network_training.py

.PHONY: demo test docs-test browser integrations prove check site clean dist release-check oldest newest

demo: .venv/.demo
	@$(BIN)/surepick demo

# Every belief at reduced size. It ends with what the tests cost in processor time; one beyond its budget of it fails.
test: .venv/.dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" --durations 20 --ignore=tests/docs --ignore=tests/browser

# The documents: their programs and sessions, the examples, the site, and what is in the wheel.
docs-test: .venv/.dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" --durations 20 tests/docs

# The pages in a browser (chromium), for those who see, hear or type them. It is passed over where there is none.
browser: .venv/.dev
	$(BIN)/python -m pytest -q tests/browser

# Adapters of packages that are large (Ray, Xopt, libEnsemble): an environment of its own, which has all of .venv beside them.
integrations: .venv-integrations/.done
	.venv-integrations/bin/python -m pytest -q tests/integrations/test_ray.py tests/integrations/test_xopt.py tests/integrations/test_libensemble.py

# Long proofs, every example of the properties, of which `make test` tries an eighth, and every case of a test.
prove: export SUREPICK_ALL_EXAMPLES = 1
prove: .venv/.dev
	$(BIN)/python -m pytest -q -m "(slow or hypothesis or cases) and not alone" -n 2 --dist worksteal -rP
	$(BIN)/python -m pytest -q -m "slow and alone" -s

check: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

site: .venv/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict  # a notice of the theme's makers is silenced
	@echo "The documents are in site/. Open site/index.html in a browser; no server is needed."

# Wheels and source archives in dist/, built twice to the same bytes.
dist: .venv/.release
	.venv/release/bin/python release/build.py dist
	.venv/release/bin/twine check --strict dist/*.whl dist/*.tar.gz
	.venv/release/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

# What the README shows, in an empty environment with what dist/ has.
release-check: dist
	.venv/release/bin/python release/rehearse.py dist

# Tests of what dist/ has, with the oldest versions of all that it needs, and with the newest.
oldest newest: .venv/.release
	$(PYTHON) -m venv --clear .venv/$@
	.venv/release/bin/python release/needed.py > .venv/newest.txt
	.venv/release/bin/uv pip install --quiet --python .venv/$@/bin/python -r release/smoke.txt -r $(if $(filter oldest,$@),release,.venv)/$@.txt
	.venv/release/bin/uv pip install --quiet --python .venv/$@/bin/python --no-deps dist/*.whl
	.venv/$@/bin/python -m pytest -q -m "not slow" -p no:cacheprovider $(SMOKE)

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.demo: .venv/bin/python $(PROJECTS) constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e "packages/surepick[demo]"
	@touch $@

.venv/.dev: .venv/bin/python $(PROJECTS) constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e "packages/surepick[dev]" -e packages/surepick-server -e packages/surepick-bench
	@touch $@ .venv/.demo

.venv-integrations/.done: .venv/.dev requirements-integrations.txt
	$(BIN)/python -m venv .venv-integrations
	$(BIN)/python -c "import site; print('import site; site.addsitedir(' + repr(site.getsitepackages()[0]) + ')')" > \
		$$(.venv-integrations/bin/python -c "import site; print(site.getsitepackages()[0])")/of_dev.pth
	.venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-integrations.txt
	@touch $@

.venv/.release: .venv/bin/python release/requirements.txt
	$(PYTHON) -m venv .venv/release
	.venv/release/bin/python -m pip install --quiet --disable-pip-version-check -r release/requirements.txt
	@touch $@

clean:
	rm -rf .venv .venv-integrations site dist
