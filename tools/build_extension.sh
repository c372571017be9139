#!/bin/sh
# Build the extension in place, into costate/_native/, with the cmake, compiler and Python of this machine: no pip, no
# network, no virtual environment. The Python must be able to import nanobind (a copy of that package on PYTHONPATH will
# do).     Use: [PYTHON=python3] [PYTHONPATH=folder] tools/build_extension.sh [further cmake options]
set -e
cd "$(dirname "$0")/.."
PYTHON="$(command -v "${PYTHON:-python3}")"
"$PYTHON" -c 'import nanobind' || { echo "nanobind is missing for $PYTHON: put it on PYTHONPATH" >&2; exit 1; }
build="build/inplace-$("$PYTHON" -c 'import sys; print(sys.implementation.cache_tag)')"
generator="Unix Makefiles"
if command -v ninja > /dev/null; then generator=Ninja; fi
cmake -S . -B "$build" -G "$generator" -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE="$PYTHON" "$@"
cmake --build "$build" --parallel "$(getconf _NPROCESSORS_ONLN)"
cp "$build"/_core.*so costate/_native/
