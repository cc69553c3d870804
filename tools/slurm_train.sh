#!/usr/bin/env bash
# Train on a slurm cluster (GPUS, GPUS_PER_NODE, CPUS_PER_TASK and SRUN_ARGS may be set):
#   tools/slurm_train.sh PARTITION JOB_NAME CONFIG WORK_DIR [arguments of train.py]
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
exec "$(dirname "$0")/run_slurm.sh" "$1" "$2" train.py "$3" --work-dir "$4" "${@:5}"
