import sys
from pathlib import Path

# The benchmarks are a folder of scripts, not a package: they find each other as `python benchmarks/...` lets them.
sys.path.insert(0, str(Path(__file__).parents[2] / 'benchmarks'))
sys.path.append(str(Path(__file__).parents[2]))  # trainings/
