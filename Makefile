# Everything runs in .venv-$(STACK), which set-up creates or completes first; see tools/setup_env.

# The stack is classic or modern; without one, the Python that is found decides.
STACK ?=
FITS.classic = (3, 10) <= v < (3, 12)
FITS.modern = (3, 11) <= v < (3, 15)
FITS. = (3, 10) <= v < (3, 15)
ifndef PYTHON
PYTHON := $(or $(shell for python in python3 python3.11 python3.13 python3.12 python3.14 python3.10; do \
	$$python -c 'import sys; v = sys.version_info[:2]; sys.exit(not $(FITS.$(STACK)))' 2>/dev/null \
	&& echo $$python && break; done),python3)
endif
ifeq ($(STACK),)
override STACK := $(or $(shell '$(PYTHON)' -c \
	'import sys; print("classic" if sys.version_info < (3, 12) else "modern")' 2>/dev/null),modern)
endif
VENV := .venv-$(STACK)
# For example: make test ARGS='-k basis'
ARGS ?=

# Where bytecode is not written, each of the many processes of demo and tests would compile the hosts anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-slow test-gpu lint format

help:
	@echo 'make demo       train EBV against its FC twin on real handwriting, on all three hosts'
	@echo 'make test       run the tests (make test-slow: those that take minutes; make test-gpu: those for a GPU)'
	@echo 'make lint       check style and format; make format repairs what it can'
	@echo 'make setup      only create or complete the environment, as each of the above does first'
	@echo
	@echo 'make setup STACK=classic                        OpenMMLab releases, torch 2.1 (Python 3.10, 3.11)'
	@echo 'make setup STACK=modern                         their maintained forks, torch 2.12 (Python 3.11 to 3.14)'
	@echo 'make setup PYTHON=/path/to/python3              choose the Python, which chooses the stack'
	@echo 'make setup MMCV_FIND_LINKS=<address or folder>  install a prebuilt mmcv instead of compiling it'

setup:
	@command -v '$(PYTHON)' >/dev/null || { echo 'error: there is no $(PYTHON), but set-up needs Python 3.10 to 3.14;' \
		'install it (Debian, Ubuntu: apt install python3 python3-venv python3-dev)' \
		'or name one with: make setup PYTHON=/path/to/python3' >&2; exit 1; }
	@'$(PYTHON)' tools/setup_env $(STACK)

demo: setup
	$(VENV)/bin/python demo/run.py $(ARGS)

test: setup
	$(VENV)/bin/python -m pytest $(ARGS)

test-slow: setup
	$(VENV)/bin/python -m pytest -m slow $(ARGS)

test-gpu: setup
	$(VENV)/bin/python -m pytest -m gpu $(ARGS)

lint: setup
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .

format: setup
	$(VENV)/bin/python -m ruff check --fix .
	$(VENV)/bin/python -m ruff format .
