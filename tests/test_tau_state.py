import pytest
import torch

from ebv_mm import EBVLinear

BASIS = dict(num_classes=11, dim=6)


def layer(tau=0.07):
    return EBVLinear(5, 11, basis=BASIS, tau=tau)


def test_a_tau_that_nothing_moved_is_not_stored():
    assert 'tau' not in layer().state_dict()


def test_a_moved_tau_travels():
    source, other = layer(), layer(tau=0.5)
    source.tau = 0.0123456789012345
    state = source.state_dict()
    assert state['tau'].dtype == torch.float64 and state['tau'].shape == ()
    other.load_state_dict(state)
    assert other.tau == source.tau  # to the last bit
    x = torch.randn(3, 5)
    assert torch.equal(other(x), source(x))


def test_a_checkpoint_without_one_means_the_configured():
    moved = layer()
    moved.tau = 0.01
    moved.load_state_dict(layer().state_dict())
    assert moved.tau == 0.07


@pytest.mark.parametrize('wrong', [0.0, -1.0, float('nan'), float('inf')])
def test_a_tau_that_is_none_is_refused(wrong):
    state = {**layer().state_dict(), 'tau': torch.tensor(wrong, dtype=torch.float64)}
    with pytest.raises(ValueError, match='temperature must be a positive number'):
        layer().load_state_dict(state)
