"""What large_n.py measures: training steps, prediction, and what crosses the network."""
