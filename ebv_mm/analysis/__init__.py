"""What a trained network looks like inside, and a basis. What is imported here is mathematics: torch only."""

from .cka import MinibatchCKA, cka_of_hsic, gram_matrix, hsic
from .features import choose_layers, layer_grams

__all__ = ['MinibatchCKA', 'choose_layers', 'cka_of_hsic', 'gram_matrix', 'hsic', 'layer_grams']
