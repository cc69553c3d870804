"""Whether every process of a distributed training has the same basis."""

from typing import Optional

import torch
from torch import distributed, nn

from .basis import Basis, BasisError

# DDP that copies buffers in every step would otherwise make every step wait for the answer.
LOOKS = 10


def seal_for(basis: Optional[Basis]) -> Optional['Seal']:
    """What tells a basis that differs from rank 0's; None where there is one process, or nothing to tell."""
    if basis is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Seal(bytes.fromhex(basis.products.digest())) if distributed.get_world_size() > 1 else None


class Seal(nn.Module):
    """The digest of a rank's own basis, and a buffer that holds rank 0's as soon as DDP has wrapped the model.

    DDP copies the buffers of rank 0 to all others when it wraps a model, which makes dense vectors the same without a
    word and leaves structured ones as different as they were. It copies this one too. So each rank sees by itself
    whether it has what rank 0 has: nobody waits for anybody, whichever ranks run whichever layers.

    The numbers 0 to 255 are float32, which averages over ranks and half precision leave as they are. They are in no
    checkpoint.
    """

    def __init__(self, digest: bytes) -> None:
        super().__init__()
        self.own = torch.tensor(list(digest), dtype=torch.float32, device='cpu')
        self.register_buffer('of_rank_0', self.own.clone(), persistent=False)
        self.looks = 0
        self.seen = None

    def check(self, name: str) -> None:
        """Raise :class:`BasisError` where rank 0 has another digest; looks only where something has written to it."""
        buffer = self.of_rank_0
        if self.looks == LOOKS or buffer.is_meta or buffer.is_inference() or self.seen == (id(buffer), buffer._version):
            return
        if not torch.equal(buffer.float().round().cpu(), self.own):
            raise BasisError(
                f'{name} of rank {distributed.get_rank()} has other vectors than that of rank 0; give all ranks the '
                'same file, or the same arguments, and start again'
            )
        self.looks += 1
        self.seen = id(buffer), buffer._version

    def _apply(self, fn, *args, **kwargs):
        """Move the digest with the module, but keep its numbers, which ``to_empty`` would lose."""
        buffer = self.of_rank_0
        self.of_rank_0 = (self.own if buffer.is_meta else buffer).to(fn(buffer[:0]).device)
        return self
