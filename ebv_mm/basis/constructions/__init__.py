"""Closed forms: bases that need no iteration."""

from .catalogue import all_offers, closed_forms
from .frame import Frame, Offer, materialise

__all__ = ['Frame', 'Offer', 'all_offers', 'closed_forms', 'materialise']
