"""Data sets, transforms and metrics are registered without their host, as models are; see tests/test_imports.py."""

from test_imports import HOSTS, python


def test_a_missing_host_is_named_for_every_registry():
    printed = python(
        """
        from mmengine.registry import DATASETS, METRICS, TRANSFORMS
        import ebv_mm
        from ebv_mm.lazy import LAZY_DATASETS, LAZY_METRICS, LAZY_TRANSFORMS
        tables = ((DATASETS, LAZY_DATASETS), (METRICS, LAZY_METRICS), (TRANSFORMS, LAZY_TRANSFORMS))
        for registry, names in tables:
            for name in names:
                try:
                    registry.build(dict(type=name))
                except ImportError as error:
                    print(str(error).startswith(f'{name} needs mmpretrain'), 'pip install mmpretrain' in str(error))
        print(sum(len(names) for _, names in tables))
        """,
        blocked=HOSTS,
    ).split()
    assert int(printed[-1]) >= 6 and printed[:-1] == ['True'] * 2 * int(printed[-1])


def test_every_name_is_what_the_room_exports():
    import ebv_mm.classification
    from ebv_mm.lazy import _REGISTRIES

    lazy = {name for _, names in _REGISTRIES for name, where in names.items() if where.host == 'mmpretrain'}
    assert lazy == set(ebv_mm.classification.__all__)
