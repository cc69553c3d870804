# The 100,000 classes and the d = 5000 of the paper, the basis being a transversal design: any two classes at least
# 89.19 degrees apart (the authors': 83), each touching 71 coordinates, 415 KB of tables in place of 2 GB.
_base_ = '../resnet50_fc_100k.py'

basis = dict(num_classes=100000, dim=5000, method='transversal', structured=True)
model = dict(head=dict(type='EBVClsHead', basis=basis, tau=0.007, predict_topk=5, balanced_init=False))
