#!/bin/sh
# On a machine with a GPU: builds the extension with what is there, and prints the tables of docs/benchmarks.md that need one, each into a file of its own. With MuJoCo
# Warp beside costate where it can be imported (tools/pack_warp.sh).     Use: tools/gpu_tables.sh FOLDER [minutes each] [names of tables, as bench.cuda has them, or paper_b]
set -e
mkdir -p "${1:?say where the tables are to go}"
out="$(cd "$1" && pwd)" minutes="${2:-4}"
[ $# -gt 2 ] && shift 2 || set -- humanoid ant quadruped memory first policy paper_b
cd "$(dirname "$0")/.."
tools/build_extension.sh > "$out/build.log" 2>&1
for name in "$@"; do
    case "$name" in
        humanoid) run="bench.cuda humanoid --quick --worlds 8192" ;;
        first) run="bench.cuda first --quick" ;;
        paper_b) run="bench.paper_b --device cuda --seconds 1" ;;
        *) run="bench.cuda $name --seconds 0.3" ;;
    esac
    # shellcheck disable=SC2086
    timeout "${minutes}m" python3 -m $run > "$out/$name.md" 2> "$out/$name.log" && echo "$name: done" || echo "$name: failed, see $name.log"
done
