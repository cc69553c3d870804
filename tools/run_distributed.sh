#!/usr/bin/env bash
# Run one of these tools in several processes: run_distributed.sh PROCESSES SCRIPT [arguments of the script]
# On several machines set NNODES, NODE_RANK, MASTER_ADDR and PORT too.
set -euo pipefail
if ! [[ $1 =~ ^[1-9][0-9]*$ ]]; then
    echo "error: '$1' stands where the number of GPUs belongs; give a whole number >= 1" >&2
    exit 2
fi
# What is missing is told once, before any process starts.
"${PYTHON:-python}" "$(dirname "$0")/$2" "${@:3}" --check
exec "${PYTHON:-python}" -m torch.distributed.run \
    --nnodes="${NNODES:-1}" \
    --node_rank="${NODE_RANK:-0}" \
    --master_addr="${MASTER_ADDR:-127.0.0.1}" \
    --master_port="${PORT:-29500}" \
    --nproc_per_node="$1" \
    "$(dirname "$0")/$2" "${@:3}" --launcher pytorch
