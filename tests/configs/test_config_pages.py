"""docs/experiments.md and the metafiles tell of every config, and of nothing else."""

import re
from collections import defaultdict

import pytest
import yaml
from experiments import CONFIGS, REPO, TWINS, is_ebv, load

from ebv_mm.paper import TABLES, Row

PAGE = (REPO / 'docs' / 'experiments.md').read_text()
INDEX = yaml.safe_load((REPO / 'model-index.yml').read_text())['Import']
METAFILES = {path: yaml.safe_load((REPO / path).read_text()) for path in INDEX}
MODELS = [model for content in METAFILES.values() for model in content['Models']]
PUBLISHED = defaultdict(set)
for row in (row for table in TABLES.values() for row in table.rows if isinstance(row, Row)):
    PUBLISHED[row.config] |= {figure.value for test in row.tests for figure in test.figures}


def test_the_page_links_every_config():
    linked = set(re.findall(r'\]\(\.\./configs/(.+?)\.py\)', PAGE))
    assert linked == set(CONFIGS)


def test_the_page_names_every_twin_of_a_host():
    named = set(re.findall(r'`(mm\w+::[^`]+\.py)`', PAGE))
    assert named == {address for address in TWINS.values() if '::' in address}


def test_links_lead_somewhere():
    for target in re.findall(r'\]\(([^)#]+)\)', PAGE):
        assert target.startswith('http') or (REPO / 'docs' / target).exists(), target


def test_the_metafiles_have_every_config_once():
    assert sorted(model['Config'] for model in MODELS) == sorted(f'configs/{name}.py' for name in CONFIGS)
    assert len({model['Name'] for model in MODELS}) == len(MODELS)
    for path, content in METAFILES.items():
        (collection,) = content['Collections']
        assert (REPO / collection['README']).exists()
        assert {model['In Collection'] for model in content['Models']} == {collection['Name']}
        assert all(model['Config'].startswith(path.rsplit('/', 1)[0]) for model in content['Models'])


@pytest.mark.parametrize('model', MODELS, ids=lambda model: model['Name'])
def test_the_metafiles_have_the_figures_of_the_page_and_the_settings_of_the_config(model):
    name = model['Config'][len('configs/') : -len('.py')]
    rows = '\n'.join(line for line in PAGE.splitlines() if f'configs/{name}.py' in line)
    for result in model.get('Results', ()):
        for figure in result['Metrics'].values():
            assert re.search(rf'(?<![\d.]){figure:g}0?(?!\d)', rows), figure
            # and no config is credited with what another recipe has reached
            assert name not in PUBLISHED or figure in PUBLISHED[name]
    train = load(name).train_cfg
    metadata = model['Metadata']
    assert metadata.get('Epochs') == train.get('max_epochs') and metadata.get('Iterations') == train.get('max_iters')
    config = load(name)
    if 'auto_scale_lr' in config:
        assert metadata['Batch Size'] == config.auto_scale_lr.base_batch_size
    assert is_ebv(name) or '_fc_' in name
