# make demo   shows git relay at work, in a repository of its own
# make check  what CI runs: format, lint, types, imports, docs, tests
# make fix    formats, and repairs what the linter can
# make docs   writes the generated pages again
# make bench  measures
# make man    shows the manual page
# make chaos  cuts a handoff at every point there is, with every kind of blow
# make lock   writes locks/ again, with the newest versions
.POSIX:
.SUFFIXES:
VENV = .venv
BIN = $(VENV)/bin
PYTHON = python3
SETUP = PYTHON='$(PYTHON)' sh tools/setup.sh
PYTEST_OPTIONS =

.PHONY: help demo check fix docs bench chaos man lock

help:
	@sed -n 's/^# //p' Makefile

demo: $(VENV)/.run
	@PATH="$$PWD/$(BIN):$$PATH" git-relay demo

check: $(VENV)/.dev
	@echo '==> format'
	@$(BIN)/ruff format --check .
	@echo '==> lint'
	@$(BIN)/ruff check .
	@echo '==> types'
	@$(BIN)/mypy
	@echo '==> imports'
	@$(BIN)/lint-imports --no-logo
	@echo '==> docs'
	@$(BIN)/python -m tools.docs --check
	@echo '==> tests'
	@$(BIN)/pytest -n auto $(PYTEST_OPTIONS)

fix: $(VENV)/.dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.dev
	@$(BIN)/python -m tools.docs

bench: $(VENV)/.dev
	@$(BIN)/python -m bench

man:
	@man ./man/git-relay.1

chaos: $(VENV)/.dev
	@RELAY_TEST_ALL_CUTS=1 PATH="$$PWD/$(BIN):$$PATH" $(BIN)/pytest -n auto tests/chaos

lock:
	@sh tools/lock.sh

$(VENV)/.run: pyproject.toml locks/run.txt tools/setup.sh
	@if [ -e $(VENV)/.dev ]; then $(SETUP) dev $(VENV) && touch $(VENV)/.dev; else $(SETUP) run $(VENV); fi
	@touch $@

$(VENV)/.dev: pyproject.toml locks/dev.txt tools/setup.sh
	@$(SETUP) dev $(VENV)
	@touch $(VENV)/.run $@
