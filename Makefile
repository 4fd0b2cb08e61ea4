# make compare        plain RAG against RAPTOR, replayed from the recording: tables and pictures in build/
# make compare LIVE=1 the same, everything computed anew (tens of minutes); stopped, it goes on where it was
# make lab            the notebooks in Jupyter
# make test           ruff, unit tests, every notebook against its committed outputs, the small live model

PYTHON ?= python3
BIN := .venv/bin
LIVE ?= 0

# The same environment when references are made and when they are compared.
export PYTHONHASHSEED := 0
export OMP_NUM_THREADS ?= 2
export TOKENIZERS_PARALLELISM := false
export PYTHONWARNINGS := ignore::DeprecationWarning

.PHONY: setup compare lab test notebooks

setup: .venv/.done

.venv/.done: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet -r requirements.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e . || $(BIN)/pip install --quiet --no-deps -e .
	touch $@

compare: setup
ifeq ($(LIVE),1)
	$(BIN)/python -m helpers fetch
	WORKBENCH_MODE=live $(BIN)/python -m helpers run
	WORKBENCH_MODE=live HF_HUB_OFFLINE=1 TQDM_DISABLE=1 $(BIN)/python -m helpers compare
else
	HF_HUB_OFFLINE=1 TQDM_DISABLE=1 $(BIN)/python -m helpers compare
endif

lab: setup
	$(BIN)/jupyter lab notebooks

# After a change: run the notebooks and keep their outputs.
notebooks: setup
	HF_HUB_OFFLINE=1 TQDM_DISABLE=1 $(BIN)/python -m helpers notebooks

# With the engine named, fetch times none: the tests name theirs.
test: export HF_HUB_OFFLINE := 1
test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	HF_HUB_OFFLINE=0 WORKBENCH_BACKEND=openvino $(BIN)/python -m helpers fetch tiny
	WORKBENCH_REQUIRE_LIVE=1 $(BIN)/python -m pytest tests
	WORKBENCH_MODE=strict TQDM_DISABLE=1 $(BIN)/python -m pytest --nbval --nbval-current-env notebooks
