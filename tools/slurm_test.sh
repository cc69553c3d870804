#!/usr/bin/env bash
# Test on a slurm cluster (GPUS, GPUS_PER_NODE, CPUS_PER_TASK and SRUN_ARGS may be set):
#   tools/slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [arguments of test.py]
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
exec "$(dirname "$0")/run_slurm.sh" "$1" "$2" test.py "$3" "$4" "${@:5}"
