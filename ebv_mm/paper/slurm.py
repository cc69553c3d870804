"""The same on a slurm cluster: a job for each model, which resumes what it finds, as the command without slurm does."""

import shlex
import sys
from pathlib import Path
from typing import List, Sequence, Union

from .reproduction import Reproduction
from .rows import Row, Study

CPUS_PER_GPU = 6


def job(
    row: Union[Row, Study], reproduction: Reproduction, partition: str, tool: Path, arguments: Sequence[str]
) -> List[str]:
    """The sbatch command of a row. Account, time limit and the like are sbatch's own variables, SBATCH_ACCOUNT ...

    Args:
        row: The row.
        reproduction: Of its table.
        partition: Where to.
        tool: The script that carries out a row where it stands.
        arguments: Of that script, beside the table and the row.
    """
    gpus = max([reproduction.experiments[config].processes for config in row.configs], default=1)
    inner = [sys.executable, str(tool), reproduction.table.name, '--only', row.name, *arguments, '--gpus', str(gpus)]
    return [
        'sbatch',
        f'--partition={partition}',
        f'--job-name={row.name}',
        '--nodes=1',
        '--ntasks=1',
        f'--gres=gpu:{gpus}',
        f'--cpus-per-task={CPUS_PER_GPU * gpus}',
        '--requeue',
        '--open-mode=append',
        f'--output={reproduction.folder / row.name}.slurm.txt',
        f'--wrap={shlex.join(inner)}',
    ]
