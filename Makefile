# Two commands: `make run` starts the dashboard, `make test` runs everything.
# Both create .venv and install what they need, from nothing: wheels only, each checked by its hash, so that nothing runs
# at their installation. Python compiles what it imports, and no more.
PYTHON ?= python3
PORT ?= 8501
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --require-hashes --only-binary :all:
# Many processes are started: each would compile everything anew where this is set.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run test

run: .venv/app-ready
	$(BIN)/streamlit run app.py --server.port $(PORT)

test: .venv/dev-ready
	sh tests/browser/ensure_chromium.sh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 3  # two cores and the browser, which mostly waits

.venv/app-ready: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --requirement requirements.txt
	touch $@

.venv/dev-ready: requirements.txt requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --requirement requirements.txt --requirement requirements-dev.txt
	touch .venv/app-ready $@
