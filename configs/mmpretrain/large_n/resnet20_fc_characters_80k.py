_base_ = '../_base_/characters.py'
