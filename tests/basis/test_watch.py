from ebv_mm.basis.watch import Watch


def test_watch():
    watch = Watch(target=0.5)
    assert not watch.see(0.7)
    assert watch.see(0.5)
    assert watch.over
