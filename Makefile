# The two that a newcomer needs: `make up` serves the site, `make test` runs all tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: help install packages up test lint redteam bench format clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

install: $(STAMP) ## the environment in .venv, and nothing else

$(STAMP): pyproject.toml scripts/environment
	@scripts/environment "$(PYTHON)"
	@touch $(STAMP)

packages:
	@PYTHON="$(PYTHON)" scripts/system-packages bwrap g++ headers

up: packages $(STAMP) ## everything running on this machine, with a demo; the address is printed last
	@$(BIN)/python manage.py up $(ARGS)

test: $(STAMP) ## set-up and all tests, on SQLite and on PostgreSQL
	@PYTHON="$(PYTHON)" scripts/system-packages bwrap g++ headers chromium initdb
	@if [ -n "$(TESTS)" ]; then $(BIN)/pytest $(TESTS); else scripts/test; fi

lint: $(STAMP) ## ruff, mypy, the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

redteam: $(STAMP) ## every hostile and honest kernel, and what stopped it; ARGS="--device cuda" on a GPU
	@PYTHON="$(PYTHON)" scripts/system-packages bwrap g++ headers
	$(BIN)/python -m tests.adversarial.redteam $(ARGS)

bench: $(STAMP) ## the figures of docs/benchmarks.md that this machine can measure
	@PYTHON="$(PYTHON)" scripts/system-packages bwrap g++ headers
	$(BIN)/python -m tests.bench.shipped --device cpu
	$(BIN)/python -m tests.bench.repeat --task softmax --kernel tasks_app/catalog/softmax/kernels/good.cpp \
	    --workload cpu_n64_c1024 --workload cpu_n16_c16384
	$(BIN)/python -m tests.bench.optimise --device cpu --task matrix_mul softmax --evaluations 16
	$(BIN)/python -m tests.bench.asks
	$(BIN)/python -m tests.bench.turnaround --device cpu --only idle,wrong --samples 6

format: $(STAMP) ## rewrite the code as `make lint` wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment (the data in var/ stays)
	rm -rf .venv
