"""The paper, table by table: its rows as data, and what carries one out, goes on with it and reports it.

Nothing here imports a host: rows are carried out by the command lines of tools/.
"""

from .rows import Figure, Row, Study, Table, Test
from .tables import TABLES

__all__ = ['TABLES', 'Figure', 'Row', 'Study', 'Table', 'Test']
