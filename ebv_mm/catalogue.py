"""Where the hosts' heads have their classifier, and which modules have none that could be replaced.

A class stands for its subclasses too, unless they are here themselves. Paths are those of :func:`~ebv_mm.head.EBVHead`.
"""

from dataclasses import dataclass, field
from typing import Callable, Dict, NamedTuple, Optional, Tuple, Union

# What a config gives a head: its own argument, or the default of the head's class.
Argument = Callable[[str], object]

FOCAL_PRIOR = 0.01


def _num_classes(get: Argument) -> Optional[int]:
    return get('num_classes')


def _things_and_stuff(get: Argument) -> int:
    return get('num_things_classes') + get('num_stuff_classes')


@dataclass(frozen=True)
class Place:
    """Where a head has its classifiers.

    Args:
        layers: Their paths. One that ends in ``?`` is there only under some settings of the head.
        scores: What becomes of the logits: 'softmax'; 'sigmoid', which needs a prior; 'signs', a sigmoid without one,
            as of masks; 'cosine', which the head scales itself; or the name of the loss argument whose
            ``use_sigmoid`` tells.
        background: Vectors beside the classes; None for one with a softmax, none with a sigmoid.
        classes: Number of classes of a config.
        prior: Of a sigmoid.
        optional: Condition of the layers that end in ``?``.
        agnostic: Name of the argument that leaves one output for all classes.
        square: Whether the host takes the layer's ``out_features`` for the number of classes, so that d must be N.
    """

    layers: Tuple[str, ...]
    scores: str = 'softmax'
    background: Optional[int] = 0
    classes: Callable[[Argument], Optional[int]] = _num_classes
    prior: float = FOCAL_PRIOR
    optional: Callable[[Argument], bool] = field(default=lambda get: False)
    agnostic: Optional[str] = None
    square: bool = False


def _dense(layer: str, **kwargs) -> Place:
    return Place((layer,), 'loss_cls', None, **kwargs)


def _decode(*layers: str, **kwargs) -> Place:
    return Place(layers, 'loss_decode', **kwargs)


PLACES: Dict[str, Place] = {
    # mmpretrain
    'LinearClsHead': Place(('fc',), 'loss'),
    'VisionTransformerClsHead': Place(('layers.head',), 'loss'),
    'DeiTClsHead': Place(('layers.head', 'layers.head_dist'), 'loss'),
    'StackedLinearClsHead': Place(('layers.-1.fc',), 'loss'),
    'ConformerHead': Place(('conv_cls_head', 'trans_cls_head'), 'loss'),
    'LeViTClsHead': Place(('head.linear', 'head_dist.linear?'), 'loss', optional=lambda get: get('distillation')),
    'EfficientFormerClsHead': Place(('head', 'dist_head?'), 'loss', optional=lambda get: get('distillation')),
    'VigClsHead': Place(('fc2',), 'loss'),
    'ArcFaceClsHead': Place(('norm_product',), 'cosine'),
    'MultiLabelLinearClsHead': Place(('fc',), 'sigmoid'),
    # classifiers inside of backbones
    'VGG': Place(('classifier.-1',)),
    'AlexNet': Place(('classifier.-1',)),
    'LeNet5': Place(('classifier.-1',)),
    'InceptionV3': Place(('fc', 'AuxLogits.fc?'), optional=lambda get: get('aux_logits')),
    # mmdet, two stages
    'BBoxHead': Place(('fc_cls',), background=1),
    'SABLHead': Place(('fc_cls',), background=1),
    'MultiInstanceBBoxHead': Place(
        ('fc_cls.*', 'fc_cls_ref.*?'), background=1, optional=lambda get: get('with_refine')
    ),
    'DIIHead': _dense('fc_cls'),
    'FCNMaskHead': Place(('conv_logits',), 'signs', agnostic='class_agnostic'),
    'MaskPointHead': Place(('fc_logits',), 'signs', agnostic='class_agnostic'),
    'FusedSemanticHead': Place(('conv_logits',)),
    'PanopticFPNHead': Place(('conv_logits',), background=1, classes=lambda get: get('num_stuff_classes')),
    'GlobalContextHead': Place(('fc',), 'sigmoid'),
    'LinearReIDHead': Place(('classifier',)),
    # mmdet, one stage
    'AnchorHead': _dense('conv_cls'),
    'AnchorFreeHead': _dense('conv_cls'),
    'RetinaHead': _dense('retina_cls'),
    'RetinaSepBNHead': _dense('retina_cls'),
    'SABLRetinaHead': _dense('retina_cls'),
    'ATSSHead': _dense('atss_cls'),
    'DDODHead': _dense('atss_cls'),
    'GFLHead': _dense('gfl_cls'),
    'VFNetHead': _dense('vfnet_cls'),
    'TOODHead': _dense('tood_cls'),
    'RepPointsHead': _dense('reppoints_cls_out'),
    'AutoAssignHead': _dense('conv_cls', prior=0.02),
    'YOLOFHead': _dense('cls_score'),
    'RTMDetHead': _dense('rtm_cls'),
    'RTMDetInsHead': _dense('rtm_cls'),
    'RTMDetSepBNHead': _dense('rtm_cls.*'),
    'RTMDetInsSepBNHead': _dense('rtm_cls.*'),
    'YOLOXHead': Place(('multi_level_conv_cls.*',), 'sigmoid'),
    'CenterNetUpdateHead': Place(('conv_cls',), 'sigmoid'),
    'CenterNetHead': Place(('heatmap_head.-1',), 'sigmoid', prior=0.1),
    'CornerHead': Place(('tl_heat.*.-1.conv', 'br_heat.*.-1.conv'), 'sigmoid', prior=0.1),
    'SSDHead': Place(('cls_convs.*.-1',), background=1),
    'YOLACTHead': _dense('conv_cls'),
    'SOLOHead': Place(('conv_cls',), 'sigmoid'),
    'SOLOV2Head': Place(('conv_cls',), 'sigmoid'),
    # queries
    'DETRHead': _dense('fc_cls'),
    'DeformableDETRHead': _dense('cls_branches.*'),
    'DINOHead': _dense('cls_branches.*', square=True),
    'DDQDETRHead': Place(('cls_branches.*', 'aux_cls_branches.*'), 'loss_cls', None, square=True),
    'MaskFormerHead': Place(('cls_embed',), background=1, classes=_things_and_stuff),
    'Mask2FormerHead': Place(('cls_embed',), background=1, classes=_things_and_stuff),
    'Mask2FormerTrackHead': Place(('cls_embed',), background=1),
    # mmseg
    'BaseDecodeHead': _decode('conv_seg'),
    'DAHead': _decode('conv_seg', 'pam_conv_seg', 'cam_conv_seg'),
    'DDRHead': _decode('conv_seg', 'aux_cls_seg'),
    'PIDHead': _decode('conv_seg', 'p_cls_seg'),
    'PointHead': _decode('fc_seg'),
    'EncHead': _decode('conv_seg', 'se_layer?', optional=lambda get: get('use_se_loss')),
    'mmseg.MaskFormerHead': Place(('cls_embed',), background=1),
    'mmseg.Mask2FormerHead': Place(('cls_embed',), background=1),
}

# Heads that have an EBV head of their own; all others become an ``EBVHead``.
OWN_TYPES = {'LinearClsHead': 'EBVClsHead', 'Shared2FCBBoxHead': 'EBVBBoxHead', 'FCNMaskHead': 'EBVMaskHead'}

# Layers whose scores are a sigmoid's, whatever the others of their head do.
SIGMOID_LAYERS = ('se_layer',)

_TEXT = 'it compares features with the embeddings of texts and has no classifier of its own'
_PRETEXT = 'it is trained without labels and has no classes'

# Heads that cannot become EBV heads, and why.
REFUSED: Dict[str, str] = {
    'CSRAClsHead': 'it divides its scores by the norms of the weight of its classifier, one for each class',
    'GARetinaHead': 'its classifier is a masked convolution',
    'GuidedAnchorHead': 'its classifier is a masked convolution',
    'YOLOV3Head': 'one convolution gives boxes, objectness and classes together',
    'IterativeDecodeHead': 'K-Net reads the weight of conv_seg as its class kernels',
    'SegmenterMaskTransformerHead': 'it compares pixels with class embeddings that pass through its transformer',
    'CoarseMaskHead': 'one linear layer gives all pixels of all classes together',
    'VPDDepthHead': 'it regresses depth',
    'ATSSVLFusionHead': _TEXT,
    'GroundingDINOHead': _TEXT,
    'SideAdapterCLIPHead': _TEXT,
}  # fmt: skip

# Modules called heads that have no classes.
WITHOUT_CLASSES: Dict[str, str] = {
    'RPNHead': 'objectness, one output',
    'GARPNHead': 'objectness, one output',
    'CascadeRPNHead': 'objectness, one output',
    'StageCascadeRPNHead': 'objectness, one output',
    'EmbeddingRPNHead': 'it has no classifier',
    'MaskIoUHead': 'it regresses the quality of masks',
    'GridHead': 'it finds points of the box, not classes',
    'STDCHead': 'it finds boundaries, not classes',
    'BEiTV1Head': _PRETEXT,
    'BEiTV2Head': _PRETEXT,
    'ClsHead': 'it has no classifier of its own',
    'MultiLabelClsHead': 'it has no classifier of its own',
}


class NoPlace(NamedTuple):
    """Why a head has no classifier to replace: it is 'refused', or is 'left' because it has no classes."""

    table: str
    reason: str


def known(cls: type) -> Union[Place, NoPlace, None]:
    """What is known of a class, or of the nearest class that it inherits from; None where nothing is."""
    for base in cls.__mro__:
        name = base.__name__
        host = base.__module__.split('.')[0]
        place = PLACES.get(f'{host}.{name}', PLACES.get(name))
        if place is not None:
            return place
        for table, reasons in (('refused', REFUSED), ('left', WITHOUT_CLASSES)):
            if name in reasons:
                return NoPlace(table, reasons[name])
    return None


def why_refused(module: object) -> Optional[str]:
    """Why a head cannot become an EBV head; None where nothing speaks against it."""
    place = known(type(module))
    return place.reason if isinstance(place, NoPlace) and place.table == 'refused' else None
