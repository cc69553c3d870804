import pytest
from scripts import load_script


@pytest.fixture(scope='session')
def reproduce():
    """The tool, in this process."""
    return load_script('tools/reproduce.py').main


@pytest.fixture(scope='session')
def list_images():
    return load_script('tools/list_images.py').main
