# From a bare clone with Python 3.11+ and make: `make demo` or `make test`. Everything else follows from .venv.
PYTHON ?= python3
EXTRAS ?= dev,hf,web
BIN := .venv/bin
STAMP := .venv/installed-$(EXTRAS)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Idle OpenMP threads spin and make busy cores many times slower.
export OMP_NUM_THREADS := 1
# Tests start many processes; without files of bytecode each of them compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup lock lowest demo docs gallery release-check test check bench bench-gpu calibration-tables reproductions clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit("attentest needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Say which to use: make PYTHON=python3.12 " + "setup") if sys.version_info < (3, 11) else 0'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing attentest and what it needs into .venv (a minute or two the first time) ..."
	@$(PIP) --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $@

# The versions that are installed here, which .ci/run should have tested.
lock:
	$(BIN)/python .ci/versions lock

# The lowest versions that pyproject.toml allows, in a virtual environment of their own.
lowest: setup
	.ci/lowest

demo: setup
	$(BIN)/attentest demo --store demo-store

# Pages of all results in results/; no corpora, models or GPU needed.
gallery: setup
	$(BIN)/python docs/gallery.py results gallery

# As many processes as there are cores. RUN="coverage run -m" measures what the tests reach.
test: setup
	$(BIN)/python -m $(RUN) pytest --numprocesses auto --dist worksteal

check: setup
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m benchmarks

bench-gpu: setup
	$(BIN)/python -m benchmarks.fleets

# From results/calibration.parquet, which `python docs/calibration.py gather STORE` adds rows to.
calibration-tables: setup
	$(BIN)/python docs/calibration.py tables

# The generated blocks and figures of docs/reproductions/, from results/*.parquet.
reproductions: setup
	$(BIN)/python docs/reproductions.py

# The documentation, executed tutorials included; warnings are errors. It works offline from disk.
docs: setup
	@$(BIN)/python -c 'import sphinx, myst_nb' 2>/dev/null || $(PIP) --constraint constraints.txt '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# Wheel and sdist, tried in a bare virtual environment without the repository.
release-check: setup
	@$(BIN)/python -c 'import build' 2>/dev/null || $(PIP) build
	.ci/release

clean:
	rm -rf .venv demo-store dist docs/_build gallery attentest-store .pytest_cache .mypy_cache .ruff_cache build
