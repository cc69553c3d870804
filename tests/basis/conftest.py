"""Small problems are quicker on one thread, by far so on a machine with other jobs."""

import pytest
import torch


@pytest.fixture(autouse=True, scope='package')
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
