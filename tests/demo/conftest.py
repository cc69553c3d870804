import sys
from pathlib import Path

# The demo is a folder of scripts, not a package: they find each other as `python demo/run.py` lets them.
sys.path.insert(0, str(Path(__file__).parents[2] / 'demo'))
sys.path.append(str(Path(__file__).parents[2]))  # trainings/
