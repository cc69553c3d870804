# The 100,000 classes of the paper with a Kerdock set: any two classes at least 88.2 degrees apart in d = 1024
# dimensions. The head trains 2.1 M parameters, holds 100 KB of signs in place of a matrix, and its checkpoint a recipe
# of 170 letters; the paper's, resnet50_ebv_100k.py: 10 M, and 2 GB in memory and in every checkpoint.
_base_ = '../resnet50_fc_100k.py'

basis = dict(num_classes=100000, dim=1024, method='kerdock', structured=True)
model = dict(head=dict(type='EBVClsHead', basis=basis, tau=0.007, predict_topk=5, balanced_init=False))
