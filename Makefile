# Two commands: `make run` starts the dashboard, `make test` runs everything. While you work, `make check` runs what is
# quick: no browser, no page, no statistics, nothing that is marked slow. `make docs` builds the handbook into site/.
# They create .venv and install what they need, from nothing: wheels only, each checked by its hash, so that nothing runs
# at their installation. Python compiles what it imports, and no more.
PYTHON ?= python3
PORT ?= 8501
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --require-hashes --only-binary :all:
# Many processes are started: each would compile everything anew where this is set.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run check test docs pictures

run: .venv/app-ready
	$(BIN)/streamlit run app.py --server.port $(PORT)

# Types beside the tests, which leave a core free at their start and end, and of which the browser's mostly wait (3 workers
# for two cores). The word of the types comes last.
# In a fresh clone one process compiles, beside the types, what every worker would compile at the same time.
COMPILED = test -d tests/__pycache__ || $(BIN)/pytest -qq --collect-only >/dev/null
BESIDE_TYPES = words=$$(mktemp); $(BIN)/mypy >$$words & types=$$!; $(COMPILED); $(1); tests=$$?; \
	wait $$types; types=$$?; cat $$words; rm $$words; exit $$((types + tests))

check: .venv/dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(call BESIDE_TYPES,$(BIN)/pytest -n 2 -m "not slow" --hypothesis-profile quick tests/unit tests/properties \
		tests/test_architecture.py dpgrams_core)

test: .venv/dev-ready
	sh tests/ensure_installed.sh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(call BESIDE_TYPES,$(BIN)/pytest -n 3)

docs: .venv/dev-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The pictures of README.md and of the handbook, from the running dashboard.
pictures: .venv/dev-ready
	$(BIN)/python -m docs.pictures

.venv/app-ready: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --requirement requirements.txt
	touch $@

.venv/dev-ready: requirements.txt requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --requirement requirements.txt --requirement requirements-dev.txt
	touch .venv/app-ready $@
