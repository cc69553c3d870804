#!/usr/bin/env bash
# Test on several GPUs, or with several processes where there is none:
#   tools/dist_test.sh CONFIG CHECKPOINT GPUS [arguments of test.py]
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
exec "$(dirname "$0")/run_distributed.sh" "$3" test.py "$1" "$2" "${@:4}"
