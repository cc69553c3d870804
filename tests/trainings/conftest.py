import sys
from pathlib import Path

# trainings/ is not installed: demo/ and benchmarks/ find it beside them.
sys.path.append(str(Path(__file__).parents[2]))
