# Two commands do everything on a machine with Python >= 3.11 and git:
#   make demo   installs, analyses a bundled incident, writes its report
#   make test   installs what the tests need and runs every check

PYTHON ?= python3
VENV   := .venv
UV     := .tools/bin/uv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo install install-dev lint types contracts unit browser wheel test bench lock clean

help:
	@echo "make demo    install, analyse fixtures/incident-342, write its report"
	@echo "make test    install what the tests need, run lint, types, contracts, tests, wheel check"
	@echo "make lock    resolve the dependencies again and write requirements/*.txt"
	@echo "make clean   remove what make has installed or built"

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "postmortem needs Python >= 3.11; call make with PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .tools
	.tools/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"

$(VENV)/.made: $(UV)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.made requirements/run.txt pyproject.toml
	$(UV) pip install --quiet --compile-bytecode --python $(VENV) --require-hashes -r requirements/run.txt
	$(UV) pip install --quiet --python $(VENV) --no-deps -e .
	$(BIN)/python -m compileall -q postmortem parsers reports
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	$(UV) pip install --quiet --python $(VENV) --require-hashes -r requirements/dev.txt
	@touch $@

install: $(VENV)/.run

install-dev: $(VENV)/.dev

demo: install
	$(BIN)/postmortem demo

lint: install-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install-dev
	$(BIN)/pyright

contracts: install-dev
	$(BIN)/lint-imports --no-cache

browser: install-dev
	$(BIN)/python scripts/browser.py

unit: install-dev browser
	$(BIN)/python -m pytest -n auto

wheel: install-dev
	$(BIN)/python scripts/check_wheel.py --uv $(UV)

test: lint types contracts wheel unit

lock: $(UV)
	$(UV) pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet --upgrade -o requirements/run.txt
	$(UV) pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet --upgrade -c requirements/run.txt -o requirements/dev.txt
	$(UV) pip compile --group bench --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet --upgrade -c requirements/run.txt -o requirements/bench.txt

bench: install-dev
	$(UV) pip install --quiet --python $(VENV) --require-hashes -r requirements/bench.txt
	$(BIN)/python -m benchmarks.run $(ARGS)

clean:
	rm -rf $(VENV) .tools dist build .ruff_cache .pytest_cache
