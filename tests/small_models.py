"""Models that are small enough for a test of what surrounds them."""


def lenet(head: dict, **settings) -> dict:
    """The config of mmpretrain's LeNet-5 for images of (1, 32, 32), with an EBV head unless ``head`` says otherwise."""
    return dict(
        type='ImageClassifier',
        backbone=dict(type='LeNet5'),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(dict(type='EBVClsHead', in_channels=120), **head),
        **settings,
    )
