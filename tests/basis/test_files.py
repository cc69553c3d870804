"""Basis files, ours and others'."""

import json
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ebv_mm.basis import (
    BasisError,
    DenseBasis,
    coherence,
    import_basis,
    load_basis,
    make_basis,
    save_basis,
    size_in_name,
)
from ebv_mm.basis.measure import coherence_at_least


@pytest.fixture
def basis():
    return make_basis(14, 7, seed=5)


def test_round_trip(basis, tmp_path):
    path = tmp_path / 'deep' / '14x7.safetensors'
    save_basis(basis, path)
    again = load_basis(path)
    assert torch.equal(again.vectors, basis.vectors)
    assert (again.method, again.seed, again.coherence) == (basis.method, 5, basis.coherence)
    assert again.coherence == pytest.approx(coherence(again.vectors), abs=2e-6)
    assert os.listdir(path.parent) == ['14x7.safetensors']
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_failed_write_leaves_what_was_there(basis, tmp_path, monkeypatch):
    path = tmp_path / 'x.safetensors'
    path.write_bytes(b'before')

    def full(*_):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr('ebv_mm.basis.files.save_file', full)
    with pytest.raises(OSError, match='No space'):
        save_basis(basis, path)
    assert path.read_bytes() == b'before'
    assert os.listdir(tmp_path) == ['x.safetensors']


def test_what_could_not_be_loaded_is_not_saved(basis, tmp_path):
    with pytest.raises(BasisError, match='is named 14x8'):
        save_basis(basis, tmp_path / 'new' / '14x8.safetensors')
    assert not os.listdir(tmp_path)


def test_names():
    assert size_in_name('data/81x82.safetensors') == (81, 82)
    assert size_in_name('81x82_other.safetensors') == (81, 82)
    assert size_in_name('basis.safetensors') is None


def test_defects(basis, tmp_path):
    with pytest.raises(FileNotFoundError, match='none.safetensors. does not exist; .*--num-classes N --dim D --out'):
        load_basis(tmp_path / 'none.safetensors')
    with pytest.raises(FileNotFoundError, match='does not exist; .*--num-classes 5 --dim 6 --out .*5x6.safetensors'):
        load_basis(tmp_path / '5x6.safetensors')
    with pytest.raises(FileNotFoundError, match='does not exist; give the path of a .npy'):
        import_basis(tmp_path / 'none.npy')
    (tmp_path / 'bad.safetensors').write_bytes(b'rubbish')
    with pytest.raises(BasisError, match='not a readable'):
        load_basis(tmp_path / 'bad.safetensors')
    save_file({'other': basis.vectors}, tmp_path / 'other.safetensors')
    with pytest.raises(BasisError, match="called 'basis'"):
        load_basis(tmp_path / 'other.safetensors')
    save_file({'basis': basis.vectors}, tmp_path / '9x9.safetensors')
    with pytest.raises(BasisError, match=r'is named 9x9, but its matrix has the shape \(14, 7\); call it 14x7.safe'):
        load_basis(tmp_path / '9x9.safetensors')
    save_file({'basis': basis.vectors * 3}, tmp_path / 'long.safetensors')
    with pytest.raises(BasisError, match='norm 3'):
        load_basis(tmp_path / 'long.safetensors')


def parallel_vectors():
    return torch.nn.functional.normalize(torch.ones(14, 7) + 1e-3 * torch.randn(14, 7))


@pytest.mark.parametrize('told', ['0.4', 'nan', 'inf', '-5', '1.5', '0.1', 'much'])
def test_what_a_file_says_of_its_coherence_is_not_believed(told, tmp_path):
    path = tmp_path / 'file.safetensors'
    save_file({'basis': parallel_vectors()}, path, dict(coherence=told))
    words = 'two of its vectors have 1.0000' if told == '0.4' else 'is a number from 0.277350 to 1'
    with pytest.raises(BasisError, match=f"says that its largest .cosine. is '?{told}.*{words}.*; make it anew"):
        load_basis(path)


def test_a_file_too_large_to_be_measured_is_looked_at():
    vectors = make_basis(200, 20, method='solver', time_limit=0.2).vectors.clone()
    exact = coherence(vectors)
    assert coherence_at_least(vectors, 200**2 * 20) == exact
    assert 0 < coherence_at_least(vectors, 10 * 200 * 20) <= exact
    vectors[100:] = vectors[:100]
    assert coherence_at_least(vectors, 10 * 200 * 20) == pytest.approx(1)


def test_a_file_that_says_strange_things(basis, tmp_path):
    path = tmp_path / 'file.safetensors'
    for metadata, words in (
        (dict(method='line\nline'), 'a method is a line'),
        (dict(method='x' * 1000), 'at most 100 letters'),
        (dict(seed='one'), 'no seed'),
        (dict(seed='9' * 10_000), 'no seed'),
    ):
        save_file({'basis': basis.vectors}, path, metadata)
        with pytest.raises(BasisError, match=words) as caught:
            load_basis(path)
        assert str(caught.value).isprintable() and len(str(caught.value)) < 500
    save_file({'x' * 10_000: basis.vectors, 'y\n': basis.vectors + 0}, path)
    with pytest.raises(BasisError, match='holds the tensors .* called .basis.') as caught:
        load_basis(path)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500
    with pytest.raises(BasisError, match='a method is a line'):
        save_basis(DenseBasis(basis.vectors, 'line\nline'), path)


@pytest.mark.parametrize('kind, size', [('U8', 1), ('U16', 2), ('U64', 8), ('F8_E4M3', 1), ('BOOL', 1)])
def test_numbers_that_are_no_basis(kind, size, tmp_path):
    header = json.dumps({'basis': dict(dtype=kind, shape=[2, 2], data_offsets=[0, 4 * size])}).encode()
    path = tmp_path / 'file.safetensors'
    path.write_bytes(struct.pack('<Q', len(header)) + header + bytes(4 * size))
    with pytest.raises(BasisError, match='make it anew'):
        load_basis(path)


def writers():
    parameter = torch.nn.Parameter

    def plain_pickle(protocol):
        def write(w, path):
            path.write_bytes(pickle.dumps(w, protocol=protocol))

        return write

    return {
        'zip': lambda w, p: torch.save(w, p),
        'legacy': lambda w, p: torch.save(w, p, _use_new_zipfile_serialization=False),
        'parameter': lambda w, p: torch.save(parameter(w), p),
        'state dict': lambda w, p: torch.save({'layer.weight': w, 'bias': w[0].clone(), 'step': 3}, p),
        'legacy dict': lambda w, p: torch.save({'w': parameter(w)}, p, _use_new_zipfile_serialization=False),
        'transposed view': lambda w, p: torch.save(w.T.contiguous().T, p),
        'double': lambda w, p: torch.save(w.double(), p),
        'un-normalised': lambda w, p: torch.save(w * 7, p),
        'pickle 2': plain_pickle(2),
        'pickle 5': plain_pickle(5),
        'npy': lambda w, p: np.save(p.open('wb'), w.numpy()),
        'Fortran npy': lambda w, p: np.save(p.open('wb'), np.asfortranarray(w.numpy())),
    }


@pytest.mark.parametrize('kind', writers())
def test_import(kind, basis, tmp_path):
    path = tmp_path / 'file'
    writers()[kind](basis.vectors, path)
    found = import_basis(path)
    assert found.method == 'imported'
    assert torch.allclose(found.vectors, basis.vectors, atol=1e-6)
    save_basis(found, tmp_path / 'ours.safetensors')
    assert torch.equal(load_basis(tmp_path / 'ours.safetensors').vectors, found.vectors)


@pytest.mark.parametrize('new', [True, False])
def test_import_of_cuda_tensors(new, basis, tmp_path):
    """As a GPU writes them: the storage is a torch.cuda.FloatStorage on 'cuda:0'. No GPU is needed to read them."""
    path = tmp_path / 'file'
    torch.save(basis.vectors, path, _use_new_zipfile_serialization=new)
    place = b'X\x03\x00\x00\x00cpu', b'X\x06\x00\x00\x00cuda:0'
    names = b'ctorch\nFloatStorage\n', b'ctorch.cuda\nFloatStorage\n'

    def move(raw):
        assert place[0] in raw and names[0] in raw
        return raw.replace(*place).replace(*names)

    if new:
        with zipfile.ZipFile(path) as archive:
            content = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, 'w') as archive:
            for name, raw in content.items():
                archive.writestr(name, move(raw) if name.endswith('data.pkl') else raw)
    else:
        path.write_bytes(move(path.read_bytes()))
    assert torch.equal(import_basis(path).vectors, basis.vectors)


class Evil:
    def __reduce__(self):
        return os.mkdir, ('executed',)


@pytest.mark.parametrize('write', ['pickle', 'zip', 'legacy', 'inside'])
def test_nothing_is_executed(write, basis, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if write == 'pickle':
        (tmp_path / 'file').write_bytes(pickle.dumps(Evil()))
    else:
        content = {'w': basis.vectors, 'x': Evil()} if write == 'inside' else Evil()
        torch.save(content, 'file', _use_new_zipfile_serialization=write != 'legacy')
    with pytest.raises(BasisError, match='no tensor data'):
        import_basis('file')
    assert os.listdir(tmp_path) == ['file']


@pytest.mark.parametrize('content', [b'', b'PK', b'text', b'\x93NUMPYx', pickle.dumps([1, 2]), pickle.dumps('x')])
def test_import_of_rubbish(content, tmp_path):
    (tmp_path / 'file').write_bytes(content)
    with pytest.raises(BasisError):
        import_basis(tmp_path / 'file')


def test_complex_numbers_are_refused(tmp_path):
    np.save(tmp_path / 'complex.npy', np.eye(3) * (1 + 1j))
    with pytest.raises(BasisError, match='holds complex128, but a basis is of real numbers; save the'):
        import_basis(tmp_path / 'complex.npy')


def test_a_tensor_that_is_there_twice_is_one(basis, tmp_path):
    torch.save({'a': basis.vectors, 'b': [basis.vectors]}, tmp_path / 'file')
    assert torch.equal(import_basis(tmp_path / 'file').vectors, basis.vectors)


def test_what_is_no_file_is_told_as_such(tmp_path):
    (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
    (tmp_path / 'gone').symlink_to(tmp_path / 'none')
    os.mkfifo(tmp_path / 'pipe')
    cases = {'.': 'is a folder', 'loop': 'symbolic links', 'gone': 'is a link to', 'pipe': 'a pipe'}
    for name, words in cases.items():
        with pytest.raises(OSError, match=f'{words}.*; give the path of a .npy'):
            import_basis(tmp_path / name)
        with pytest.raises(OSError, match=f'{words}.*; make it with: '):
            load_basis(tmp_path / name)


def test_truncated_files(basis, tmp_path):
    for new in (True, False):
        path = tmp_path / f'file{new}'
        torch.save(basis.vectors, path, _use_new_zipfile_serialization=new)
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(BasisError):
            import_basis(path)
