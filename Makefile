# make lists the targets
.DEFAULT_GOAL := help
PYTHON ?= python3
export OMP_NUM_THREADS ?= 1
comma := ,

.PHONY: help install demo test test-fast check bench docs wheel clean

help:
	@echo "install  everything, pinned, into .venv"
	@echo "demo     the main jobs on embedded data, ending in an HTML report"
	@echo "test     all tests"
	@echo "test-fast  the inner loop, under a minute: no training by the command line, no service, no browser"
	@echo "check    style, types, and code that nothing uses"
	@echo "bench    speed and size against other tools, as ratios"
	@echo "docs     the documentation as HTML, into build/site"
	@echo "wheel    a wheel for Linux with this glibc or a newer one, tried in an empty environment, into dist"
	@echo "clean    remove what the other targets made"

install: .venv/installed

KERNELS = $(wildcard src/fewer/*/kernels/*)

# uv is quick; where it cannot be had or fails, pip does the same more slowly
define installed
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q -c constraints.txt uv || true
	UV_FIND_LINKS="$$PIP_FIND_LINKS" UV_SYSTEM_CERTS=1 .venv/bin/python -m uv pip install -q \
	  --python .venv/bin/python $(2) -c constraints.txt -e '$(1)' \
	  || .venv/bin/python -m pip install -q -c constraints.txt -e '$(1)'
	touch $@
endef

# bytecode, as pip makes it: hundreds of tests start a process that imports torch, in half the time
.venv/installed: pyproject.toml setup.py constraints.txt $(KERNELS)
	$(call installed,.[dev],--compile-bytecode)

# the four systems alone, without what tests and documentation need; where everything is there already, that will do
ifeq ($(wildcard .venv/installed),)
SYSTEMS = .venv/systems
else
SYSTEMS = .venv/installed
endif

.venv/systems: pyproject.toml setup.py constraints.txt $(KERNELS)
	$(call installed,.[vision$(comma)cellfree$(comma)control$(comma)nowcast])

demo: $(SYSTEMS)
	.venv/bin/fewer demo --out demo

test: install
	.venv/bin/python -m pytest -n 2 --dist worksteal

FAST = tests/test_arrows.py tests/test_exports.py tests/test_front_door.py tests/test_house.py tests/core tests/pruning \
  tests/attack/test_threat.py tests/packs/test_pack_file.py tests/packs/test_pack_codec.py \
  tests/packs/test_runtime_ops.py tests/packs/test_runtime_chain.py tests/run/test_options.py

test-fast: install
	.venv/bin/python -m pytest -n 2 --dist worksteal $(FAST)

check: install
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/vulture

bench: install
	.venv/bin/fewer bench

docs: install
	.venv/bin/python scripts/rooms.py
	.venv/bin/python scripts/readme_tables.py
	.venv/bin/mkdocs build --strict

wheel: install
	rm -rf dist
	.venv/bin/python scripts/release/wheel.py dist
	.venv/bin/python scripts/release/try_wheel.py dist/*.whl

clean:
	rm -rf .venv build demo dist src/*.egg-info src/fewer/*/*.so
