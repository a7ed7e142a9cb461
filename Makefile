# The two that a newcomer needs: `make up` serves the site, `make test` runs the tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# What to install: a site's host needs no `runner`, a runner's host no `site`, and neither needs `dev`.
EXTRAS ?= site,runner,mcp,parquet,dev
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: help install packages up test coverage lint redteam bench bench-site bench-chaos evaluators format wheel lock clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

install: $(STAMP) ## the environment in .venv, and nothing else

$(STAMP): pyproject.toml requirements.lock scripts/environment
	@scripts/environment "$(PYTHON)" "$(EXTRAS)"
	@touch $(STAMP)

packages:
	@PYTHON="$(PYTHON)" scripts/system-packages bwrap g++ headers

up: packages $(STAMP) ## everything running on this machine, with a demo; the address is printed last
	@$(BIN)/python manage.py up $(ARGS)

test: $(STAMP) ## set-up and tests, on SQLite and on PostgreSQL; ALL=1: also more cases of the same kind
	@PYTHON="$(PYTHON)" scripts/system-packages bwrap g++ headers chromium initdb
	@if [ -n "$(TESTS)" ]; then $(BIN)/pytest $(TESTS); else scripts/test; fi

coverage: $(STAMP) ## which lines the tests run that start no other process; TESTS="..." for some
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q $(if $(TESTS),$(TESTS),tests/unit/kbench_web tests/unit/leaderboard_app \
	    tests/unit/runs_app tests/unit/tasks_app tests/unit/gpu_runner/data tests/unit/gpu_runner/engine)
	$(BIN)/coverage report

lint: $(STAMP) ## ruff, mypy, the import contracts, the templates
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djlint --lint --quiet templates runs_app/features

redteam: $(STAMP) ## every hostile and honest kernel, and what stopped it; ARGS="--device cuda" on a GPU
	@PYTHON="$(PYTHON)" scripts/system-packages bwrap g++ headers
	$(BIN)/python -m tests.adversarial.redteam $(ARGS)

bench: $(STAMP) ## the figures of docs/benchmarks.md that this machine can measure
	@PYTHON="$(PYTHON)" scripts/system-packages bwrap g++ headers
	$(BIN)/python -m tests.bench.shipped --device cpu
	$(BIN)/python -m tests.bench.repeat --task softmax --kernel tasks_app/catalog/softmax/kernels/good.cpp \
	    --workload cpu_n64_c1024 --workload cpu_n16_c16384
	$(BIN)/python -m tests.bench.asks
	$(BIN)/python -m tests.bench.turnaround --device cpu --only idle,wrong --samples 6

bench-site: $(STAMP) ## pages, watchers and ingest of a site with a million evaluations; ARGS="--evaluations 20000"
	$(BIN)/python -m tests.bench.scale $(ARGS)
	@PYTHON="$(PYTHON)" scripts/system-packages initdb
	scripts/with-postgres $(BIN)/python -m tests.bench.scale $(ARGS)

bench-chaos: $(STAMP) ## kill processes of every kind while a site works, and count what comes of it
	@PYTHON="$(PYTHON)" scripts/system-packages bwrap g++ headers
	$(BIN)/python -m tests.bench.chaos $(ARGS)

evaluators: $(STAMP) ## the evaluators for other searches, with the packages of those
	test -d .venv-evaluators || "$(PYTHON)" -m venv .venv-evaluators
	.venv-evaluators/bin/pip install -q --no-deps -r tests/evaluators/requirements.txt
	PYTHONPATH=. .venv-evaluators/bin/python -m pytest -c tests/evaluators/pytest.ini --rootdir . \
	    --confcutdir tests/evaluators tests/evaluators

format: $(STAMP) ## rewrite the code as `make lint` wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(STAMP) ## the client and the engine, without the site, as a wheel; prints where it is
	@$(BIN)/python manage.py shell --verbosity 0 -c \
	    "from kbench_web.client.wheel import wheel; print(wheel())"

lock: $(STAMP) ## newer releases of all packages in requirements.lock, as pyproject.toml allows
	scripts/lock $(ARGS)

clean: ## remove the environment (the data in var/ stays)
	rm -rf .venv
