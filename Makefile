# Two commands need nothing but Python and make: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash -eu -o pipefail
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# A company's own certificates are in the system's store, which uv leaves alone unless told.
export UV_SYSTEM_CERTS ?= true
CODE := gpuyard components infra policies
# What every command imports is compiled once here; uv leaves that out, and not every machine lets Python do it later.
QUICK := click pydantic pydantic_core typing_inspection annotated_types yaml jsonschema_rs rich typing_extensions.py

.PHONY: help setup demo test lint docs bench bench-short lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP)  ## install the pinned Python packages into .venv

$(STAMP): requirements.lock requirements-uv.lock pyproject.toml
	@start=$$SECONDS; printf 'Python packages       '; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "fail"; echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 2; }; \
	$(PYTHON) -m venv --clear .venv 2>.venv-error || { cat .venv-error; rm -f .venv-error; \
	  echo "cannot make a virtual environment: install your system's python3-venv"; exit 2; }; rm -f .venv-error; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock; \
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock requirements-uv.lock; \
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .; \
	$(BIN)/python -m compileall -q $(foreach name,$(QUICK),.venv/lib/python3*/site-packages/$(name)) $(CODE); \
	touch $(STAMP); echo "ok   $$((SECONDS - start)) s"

demo: setup  ## from a check to gang-scheduled training jobs on a simulated GPU cluster
	@$(BIN)/gpuyard demo

test: setup lint  ## lint and all tests; the first time the sandbox's binaries are built
	@$(BIN)/python -m pytest -n 2 -m "not sandbox and not pulumi"
	@$(BIN)/python -m pytest -m "sandbox or pulumi" --durations=5

lint: setup  ## formatting, lint, layers, types
	@$(BIN)/ruff check --quiet . && echo "ruff                  ok"
	@$(BIN)/ruff format --quiet --check . && echo "format                ok"
	@$(BIN)/lint-imports --no-cache > .lint-imports 2>&1 || { cat .lint-imports; rm -f .lint-imports; exit 1; }; \
	rm -f .lint-imports; echo "layers                ok"
	@$(BIN)/pyright --warnings > .pyright 2>&1 || { cat .pyright; rm -f .pyright; exit 1; }; \
	rm -f .pyright; echo "types                 ok"

docs: setup  ## write the generated pages of docs/reference
	@$(BIN)/python -m infra.pages

bench: setup  ## measure, in one run and as ratios
	@$(BIN)/python -m benchmarks

bench-short: setup  ## the same once, for CI
	@$(BIN)/python -m benchmarks --short

lock: setup  ## resolve requirements.lock again
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --all-extras --group dev \
	  --upgrade --custom-compile-command "make lock" -o requirements.lock pyproject.toml

clean:  ## remove the virtual environment and what tools left
	@rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
