# Everything runs in .venv, which set-up creates or completes first; see tools/setup_env.py.

# The first Python 3.11 on the path; `make setup PYTHON=/path/to/python3.11` names another.
PYTHON ?= $(or $(shell for python in python3.11 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && echo $$python && break; \
	done),python3)
# For example: make test ARGS='-k basis'
ARGS ?=

# Where bytecode is not written, each of the many processes of demo and tests would compile the hosts anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-slow lint format

help:
	@echo 'make demo       train EBV against its FC twin on real handwriting, on all three hosts'
	@echo 'make test       run the tests (make test-slow: those that take minutes)'
	@echo 'make lint       check style and format; make format repairs what it can'
	@echo 'make setup      only create or complete .venv, as each of the above does first'
	@echo
	@echo 'make setup PYTHON=/path/to/python3.11           choose the Python for .venv'
	@echo 'make setup MMCV_FIND_LINKS=<address or folder>  install a prebuilt mmcv instead of compiling it'

setup:
	@command -v '$(PYTHON)' >/dev/null || { echo 'error: there is no $(PYTHON), but set-up needs Python 3.11;' \
		'install it (Debian: apt install python3 python3-venv python3-dev)' \
		'or name one with: make setup PYTHON=/path/to/python3.11' >&2; exit 1; }
	@'$(PYTHON)' tools/setup_env.py

demo: setup
	.venv/bin/python demo/run.py $(ARGS)

test: setup
	.venv/bin/python -m pytest $(ARGS)

test-slow: setup
	.venv/bin/python -m pytest -m slow $(ARGS)

lint: setup
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .

format: setup
	.venv/bin/python -m ruff check --fix .
	.venv/bin/python -m ruff format .
