#!/usr/bin/env bash
# Train on several GPUs, or with several processes where there is none:
#   tools/dist_train.sh CONFIG GPUS [arguments of train.py]
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
exec "$(dirname "$0")/run_distributed.sh" "$2" train.py "$1" "${@:3}"
