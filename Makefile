# On a fresh machine every target first makes .venv, installs the pinned dependencies and builds what it needs.
#   make run     the main job                        make lint     all static checks
#   make test    lint and all tests                  make format   rewrite sources and generated files
#   make slow    the tests that take minutes         make bench    benchmarks against other engines
#   make clean   remove what was built (not .venv)
# Pass options with ARGS:  make test ARGS="-k pendulum"     Another Python: make run PYTHON=python3.12
# Another example: make run EXAMPLE=identify_pendulum       Quickly: make run ARGS=--quick

PYTHON ?= python3
ARGS ?=
EXAMPLE ?= chain
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# Stamps live inside the environment: a new environment starts without them.
DEPS := $(VENV)/.deps-stamp
EXT := $(VENV)/.extension-stamp
EXT_SOURCES := CMakeLists.txt pyproject.toml $(shell find core drivers -type f 2>/dev/null)
CPP := $(shell find core drivers tests -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) 2>/dev/null)
STUB := costate/_native/_core.pyi
# Reads the module in the build folder: works while the Python around it is being changed.
STUBGEN = $(BIN)/python -m nanobind.stubgen -q -m _core -o $(STUB) \
	-i build/ext-$$($(BIN)/python -c 'import sys; print(sys.implementation.cache_tag)')

.PHONY: run test slow bench lint format build core-tests stubs clean
.DELETE_ON_ERROR:

run: $(EXT)
	$(BIN)/python examples/$(EXAMPLE).py $(ARGS)

test: lint core-tests $(EXT)
	$(BIN)/python -m pytest -n auto --maxprocesses=8 --slow $(ARGS)

slow: $(EXT)
	$(BIN)/python -m pytest -n auto --maxprocesses=8 --full -m full $(ARGS)

bench: $(EXT)
	$(BIN)/python -m bench $(ARGS)

lint: $(DEPS)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(if $(CPP),$(BIN)/clang-format --dry-run -Werror $(CPP))
	$(BIN)/python tools/gen_layout.py --check
	$(BIN)/python tools/check_style.py
	$(BIN)/typos
	$(BIN)/pyright --warnings

format: $(DEPS) stubs
	$(BIN)/python tools/gen_layout.py
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format
	$(if $(CPP),$(BIN)/clang-format -i $(CPP))

# ---- environment ----------------------------------------------------------------------------------------------------
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "costate needs Python 3.10 or newer; try PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# Rewritten only when the list changes, so that other edits of pyproject.toml install nothing.
$(VENV)/requirements.txt: pyproject.toml tools/requirements.py | $(BIN)/python
	@$(BIN)/python tools/requirements.py dev > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(DEPS): $(VENV)/requirements.txt constraints.txt
	@echo "installing the pinned dependencies into $(VENV) (minutes, the first time)"
	$(PIP) -c constraints.txt -r $(VENV)/requirements.txt
	@touch $@

# ---- C++ ------------------------------------------------------------------------------------------------------------
build: $(EXT)

$(EXT): $(DEPS) $(EXT_SOURCES)
	@echo "building the extension"
	$(PIP) --no-build-isolation --no-deps -e .
	@test -f $(STUB) || $(STUBGEN)
	@touch $@

stubs: $(EXT)
	$(STUBGEN)

core-tests: $(DEPS)
	@test -f build/tests/build.ninja || $(BIN)/cmake -S . -B build/tests -G Ninja -DCOSTATE_TESTS=ON \
		-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja)
	$(BIN)/cmake --build build/tests

clean:
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis $(EXT) costate/_native/*.so
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
