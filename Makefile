# Set-up, checks and the demo. `make demo` and `make test` set everything up that they need.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Hundreds of processes start in a run of the tests. What one has compiled of the project the others need not.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PYTHON := $(VENV)/bin/python
LOCK := .requirements.lock
# A step's stamp is named by what it was made from, and written last: a step that was broken off runs again.
# An environment knows its own path, so the path belongs to the name.
hash = $(shell (pwd; cat $(1)) | sha256sum | cut -c1-16)
LOCK_STAMP := $(VENV)/.done-lock-$(call hash,$(LOCK))
PROJECT_STAMP := $(VENV)/.done-project-$(call hash,$(LOCK) pyproject.toml)
# One whose Python has gone from the machine is made anew.
ifeq ($(shell $(PYTHON) -c 'print(1)' 2> /dev/null),)
$(shell rm -f $(VENV)/.done-*)
endif
# Most tests wait for brokers, servers and Spark: three at a time keep two processors busy. With four, pods on the node
# come to a stand.
WORKERS ?= 3
# They have to be there before a source package can be built without a download of its own.
BUILD_TOOLS := pip|setuptools|wheel|hatchling|editables|packaging|pathspec|pluggy|tomlkit|trove-classifiers

.PHONY: help install jvm demo test test-long test-unit test-parts test-quick lint format images test-kstatus bench bench-quick bench-operator bench-tenants profile test-e2e test-nodes test-hour test-idle coverage again mutations soak faults crd lock clean

help:
	@echo "make demo         run the demonstration (sets everything up the first time)"
	@echo "make test         the tests of a check that this machine can run; names the others and why"
	@echo "make test-long    the same, and further ways to what its longest tests show: other seeds, more moments of a fault"
	@echo "make test-unit    the tests that need neither a broker nor Spark, nor servers and processes of their own"
	@echo "make test-parts   single parts with real servers, processes and disks; neither a broker nor Spark"
	@echo "make test-quick   before each commit: lint, unit and parts, and one test each of Spark and a broker"
	@echo "make test-e2e     the operator and its pods on a node of its own (root, Linux), from images made here"
	@echo "make test-nodes   three nodes: drained, cut off and lost, with applications on them (root, Linux; a quarter of an hour)"
	@echo "make test-hour    no alert fires in MINUTES= (60) of restarts, changes, rescaling and pauses on a node (root, Linux)"
	@echo "make test-kstatus the rules of kstatus as tests restate them, beside kstatus itself (Go; a minute the first time)"
	@echo "make test-idle    an idle operator with 50 applications writes nothing for two minutes"
	@echo "make soak         200 kills at random moments under exactly once, a long random life, and memory under 30 minutes of load"
	@echo "make coverage     lines and branches that the tests pass through, processes and workers of Spark included; TEST= some of them"
	@echo "make again        TEST= as often as TIMES= says on a loaded machine, and how often it failed"
	@echo "make mutations    deliberate defects, each of which a test has to catch; NAMES= tries some of them"
	@echo "make faults       requests, brokers and instances that fail: each in every way, and HOURS= of histories from SEED= on"
	@echo "make lint         ruff, mypy and the import contracts"
	@echo "make format       let ruff format and mend what it can"
	@echo "make bench        speed beside Kafka Streams, quixstreams, Structured Streaming, Flink SQL: WORKLOADS= ROUNDS= RECORDS="
	@echo "make bench-quick  speed beside Kafka Streams, in under five minutes"
	@echo "make bench-operator  the operator with many applications: APPLICATIONS= (1000) IDLE= CHANGES= SHARDS= CHART=file.svg"
	@echo "make bench-tenants   what a team's change waits for while other teams misbehave: CHANGES="
	@echo "make profile      where an instance's time goes: WORKLOAD=catch-up (or restore); a flame graph, Spark's stage times"
	@echo "make images       both images as OCI archives in dist/images, with labels and bills of materials (root, Linux; no Docker)"
	@echo "make install      set-up only: .venv, Java, jars"
	@echo "make crd          write the resource's definition and its reference from the models of api/"
	@echo "make lock         pin the dependencies of pyproject.toml anew"
	@echo "make clean        remove .venv and what tools left (the jars' cache folder stays)"

install: $(PROJECT_STAMP) jvm

$(LOCK_STAMP):
	@rm -f $(VENV)/.done-*
	@python=; for each in python3.11 python3.12 python3.13 python3; do \
	  if "$$each" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null; \
	  then python=$$each; break; fi; done; \
	if [ -z "$$python" ]; then \
	  echo "Python 3.11, 3.12 or 3.13 with its venv module was not found on PATH. Install one (Debian and Ubuntu:" \
	    "apt-get install python3 python3-venv), then run make again." >&2; exit 1; fi; \
	echo "python: $$("$$python" --version), environment in $(VENV)"; \
	clear=--clear; \
	if $(PYTHON) -c '' 2> /dev/null && grep -qsF '$(CURDIR)/$(VENV)' $(VENV)/bin/activate; then clear=; fi; \
	"$$python" -m venv $$clear $(VENV)
	@echo "dependencies: installing what $(LOCK) names"
	@awk '/^[^ #]/ { take = ($$0 ~ /^($(BUILD_TOOLS))==/) } take' $(LOCK) > $(VENV)/build-tools.txt
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/build-tools.txt
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --no-build-isolation -r $(LOCK)
	@touch $@

$(PROJECT_STAMP): $(LOCK_STAMP)
	@echo "project: installing it into $(VENV), editable"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation -e .
	@touch $@

# Looks each time, since the cache folder and Java are outside of this one; fetches only what is missing.
jvm: $(PROJECT_STAMP)
	@$(PYTHON) -m streams_runtime.jvm.machine_setup
	@$(PYTHON) -m streams_runtime.cli.class_archives

demo: install
	@$(PYTHON) examples/demo.py

# Seven lanes (tests/support/lanes.py), three workers: four keep two cores no busier, and each other waiting.
test: install
	@$(PYTHON) -m pytest -n $(WORKERS) --dist loadscope

# Those with the marker `long`, too: further ways to what `make test` shows (tests/support/long_runs.py).
test-long: install
	@STREAMSAPP_TEST_LONG=1 $(PYTHON) -m pytest -n $(WORKERS) --dist loadscope

# A pytest for each core, and each test file in one of them alone.
SIDE_BY_SIDE := $(PYTHON) tests/support/side_by_side.py

# Generated tests try a few examples here, and all of them in `make test`.
test-unit: $(PROJECT_STAMP)
	@STREAMSAPP_TEST_EXAMPLES=5 $(SIDE_BY_SIDE) tests/unit

test-parts: $(PROJECT_STAMP)
	@$(SIDE_BY_SIDE) tests/parts

# Before each commit: lint, all that needs neither broker nor Spark, and one batch of each.
test-quick: lint
	@$(SIDE_BY_SIDE) tests/unit tests/parts $(SMOKE)

SMOKE := tests/integration/test_pipeline_tables.py::test_a_where_of_a_table_deletes_rows_that_no_longer_fit_and_is_silent_about_others \
  tests/integration/test_transactions.py::test_a_predecessor_is_fenced_and_its_open_transaction_given_up

test-e2e: install
	@STREAMSAPP_TEST_LONG=1 $(PYTHON) -m pytest tests/e2e

test-nodes: install
	@$(PYTHON) -m pytest -s tests/nodes/long_nodes.py

MINUTES := 60
test-hour: install
	@STREAMSAPP_TEST_MINUTES=$(MINUTES) $(PYTHON) -m pytest -s tests/e2e/long_hour.py

test-kstatus: $(PROJECT_STAMP)
	@$(PYTHON) -m pytest tests/cluster/long_kstatus.py

test-idle: install
	@STREAMSAPP_TEST_IDLE=1 $(PYTHON) -m pytest tests/cluster/test_operator_idle.py

# Workers of Spark save what they have passed through after each task (tests/support/coverage_daemon.py).
coverage: export COVERAGE_FILE := $(CURDIR)/.coverage/data
coverage: export PYTHONPATH := $(CURDIR)/tests/support
coverage: export SPARK_SUBMIT_OPTS := -XX:TieredStopAtLevel=1 -Dspark.python.daemon.module=coverage_daemon
coverage: install
	@rm -rf .coverage; mkdir .coverage
	@failed=; $(VENV)/bin/coverage run -m pytest -n $(WORKERS) --dist loadscope $(TEST) || failed=1; \
	$(VENV)/bin/coverage combine --quiet; $(VENV)/bin/coverage report --skip-covered; [ -z "$$failed" ]

# TEST: what pytest takes. Beside it busy loops compute on all cores.
TIMES := 20
again: install
	@$(PYTHON) tests/support/again.py "$(TEST)" --times $(TIMES)

soak: install
	@STREAMSAPP_TEST_LONG=1 STREAMSAPP_TEST_KILLS=200 $(PYTHON) -m pytest tests/integration/test_exactly_once_kills.py -k random
	@STREAMSAPP_TEST_KILLS=1 $(PYTHON) -m pytest tests/integration/test_process_kills.py
	@STREAMSAPP_TEST_RESOURCES=100000 $(PYTHON) -m pytest tests/unit/test_any_resource.py
	@STREAMSAPP_TEST_SEED=$$RANDOM STREAMSAPP_TEST_STEPS=80 $(PYTHON) -m pytest tests/integration/test_random_lives.py
	@$(PYTHON) tests/benchmarks/full.py --workloads soak --optional

mutations: $(PROJECT_STAMP)
	@$(PYTHON) tests/support/mutations.py $(NAMES)

# SEED: the first history's, and the order of the other faults.
SEED := 1
HOURS := 1
ROLLS := 10
faults: install
	@STREAMSAPP_TEST_LATE=100 $(PYTHON) -m pytest tests/integration/test_late_requests.py
	@STREAMSAPP_TEST_ROLLS=$(ROLLS) $(PYTHON) -m pytest -s tests/faults/long_rolling.py
	@STREAMSAPP_TEST_SEED=$(SEED) $(PYTHON) -m pytest -s tests/faults/long_brokers.py tests/faults/long_instances.py
	@$(PYTHON) tests/faults/run.py --seed $(SEED) --hours $(HOURS)

lint: $(PROJECT_STAMP)
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo

format: $(PROJECT_STAMP)
	@$(VENV)/bin/ruff check --fix-only
	@$(VENV)/bin/ruff format

# All of it takes hours. WORKLOADS and CONTESTANTS: names, separated by commas; QUERIES: NEXMark's, as q0,q5; CASES: by
# semicolons; RECORDS: of each workload's first case; OPTIONAL=1: the largest cases too.
bench: install
	@$(PYTHON) tests/benchmarks/full.py $(if $(WORKLOADS),--workloads "$(WORKLOADS)") \
	  $(if $(CONTESTANTS),--contestants "$(CONTESTANTS)") $(if $(ROUNDS),--rounds $(ROUNDS)) \
	  $(if $(RECORDS),--records $(RECORDS)) $(if $(CASES),--cases "$(CASES)") $(if $(QUERIES),--queries "$(QUERIES)") \
	  $(if $(OPTIONAL),--optional)

bench-quick: install
	@$(PYTHON) tests/benchmarks/quick.py

APPLICATIONS := 1000
bench-operator: install
	@$(PYTHON) tests/benchmarks/bench_operator.py --applications "$(APPLICATIONS)" $(if $(IDLE),--idle $(IDLE)) \
	  $(if $(CHANGES),--changes $(CHANGES)) $(if $(SHARDS),--shards $(SHARDS)) $(if $(CHART),--chart $(CHART))

bench-tenants: install
	@$(PYTHON) tests/benchmarks/bench_tenants.py $(if $(CHANGES),--changes $(CHANGES))

WORKLOAD := catch-up
profile: install
	@$(PYTHON) tests/benchmarks/profiled.py $(WORKLOAD)

# SOURCE= where the sources are, PULL=1 from the official base image, TARGETS= some of: operator runtime.
images: jvm
	@PYTHONPATH=tests/support $(PYTHON) tests/support/release_images.py

crd: $(PROJECT_STAMP)
	@$(PYTHON) -m streams_runtime.api.crd.definition > crds/streamsapplications.yaml.new
	@mv crds/streamsapplications.yaml.new crds/streamsapplications.yaml
	@cp crds/streamsapplications.yaml charts/streams-operator/files/
	@$(PYTHON) -m streams_runtime.api.crd.reference > crds/README.md.new
	@mv crds/README.md.new crds/README.md

lock: $(LOCK_STAMP)
	@CUSTOM_COMPILE_COMMAND="make lock" $(VENV)/bin/pip-compile --quiet --all-extras --output-file $(LOCK) pyproject.toml

clean:
	rm -rf $(VENV) .coverage .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
	find operator runtime tests -name __pycache__ -type d -prune -exec rm -rf {} +
