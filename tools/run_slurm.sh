#!/usr/bin/env bash
# Run one of these tools under slurm: run_slurm.sh PARTITION JOB_NAME SCRIPT [arguments of the script]
# GPUS, GPUS_PER_NODE, CPUS_PER_TASK and SRUN_ARGS may be set.
set -euo pipefail
GPUS=${GPUS:-8}
GPUS_PER_NODE=${GPUS_PER_NODE:-$((GPUS < 8 ? GPUS : 8))}
# shellcheck disable=SC2086  # SRUN_ARGS is a list of words
srun --partition="$1" \
    --job-name="$2" \
    --gres=gpu:"$GPUS_PER_NODE" \
    --ntasks="$GPUS" \
    --ntasks-per-node="$GPUS_PER_NODE" \
    --cpus-per-task="${CPUS_PER_TASK:-5}" \
    --kill-on-bad-exit=1 \
    ${SRUN_ARGS:-} \
    "${PYTHON:-python}" -u "$(dirname "$0")/$3" "${@:4}" --launcher slurm
