#!/bin/sh
# MuJoCo Warp for a machine that has a GPU but no network, where `bench.cuda` is to run it: its wheels, without what it does not need there, in pieces
# that may travel one by one.     Use: tools/pack_warp.sh FOLDER [Python version, as 3.12] [megabytes of a piece]
# There, with all pieces in FOLDER:  cat FOLDER/warp.* | tar xJ -C SOMEWHERE;  PYTHONPATH=SOMEWHERE python -m bench.cuda humanoid
set -e
to="${1:?say where the pieces are to go}" python="${2:-3.12}" size="${3:-48}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$to"
pip download --quiet --no-deps --only-binary=:all: --python-version "$python" --platform manylinux_2_28_x86_64 \
    --platform manylinux2014_x86_64 --dest "$work/wheels" \
    warp-lang==1.19.0 mujoco==4.0.0 mujoco-core==4.0.0 mujoco-warp==4.0.0 absl-py etils importlib_resources zipp
for wheel in "$work"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$work/unpacked"; done
cd "$work/unpacked"
rm -rf warp/bin/warp-clang.so warp/tests warp/examples mujoco/doc mujoco_warp/test_data # the compiler for processors, and what nobody imports
tar c . | xz -6 -T0 | split -b "${size}M" -d - "$work/warp."
mv "$work"/warp.* "$OLDPWD/$to/" 2> /dev/null || mv "$work"/warp.* "$to/"
