# Everything from a fresh clone: `make demo` audits a sample model, `make test` runs the tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUTPUT ?= demo/run
# The sample models' photographs, prepared once.
export TFAUDIT_DEMO_DATA ?= $(CURDIR)/demo/data
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test slow trust older lint format docs wheel clean

demo: $(VENV)/.demo
	$(BIN)/python sample_models/photos.py $(TFAUDIT_DEMO_DATA)
	$(BIN)/tfaudit run sample_models/input_bound_images.py --output $(OUTPUT) --overwrite \
		--price 0.34 --fail-on never

test: $(VENV)/.dev
	$(BIN)/python -m pytest

# Every sample model for real, each against the `expect:` lines in its docstring.
slow: $(VENV)/.dev
	$(BIN)/python -m pytest tests/test_samples.py --run-samples

# Whether comparisons can be trusted: figures, and what must hold of them.
trust: $(VENV)/.demo
	$(BIN)/python sample_models/photos.py $(TFAUDIT_DEMO_DATA)
	$(BIN)/python benchmarks/freezing.py
	$(BIN)/python benchmarks/trust.py

# The tests that run children, on the oldest TensorFlow that is supported.
older:
	$(PYTHON) -m venv .venv-older
	.venv-older/bin/python -m pip install --quiet --editable . 'tensorflow==2.16.*' 'tf_keras==2.16.*' \
		pytest hypothesis scikit-learn pillow
	.venv-older/bin/python -m pytest -m tensorflow

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# docs/checks.md, which is made from the checks.
docs: $(VENV)/.dev
	$(BIN)/python -m tfaudit.documentation docs/checks.md

wheel: $(VENV)/.dev
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) .venv-older build dist demo *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo 'Python 3.10 or newer is needed: make PYTHON=python3.12 …'; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps are remade when setup.cfg changes, so that an old environment is never used.
$(VENV)/.demo: setup.cfg | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[tensorflow,demo]'
	@touch $@

$(VENV)/.dev: setup.cfg | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[tensorflow,demo,dev]'
	@touch $@ $(VENV)/.demo
