"""Test a checkpoint of any host: python tools/test.py CONFIG CHECKPOINT."""

from ebv_mm.launch import (
    argument_parser,
    build_runner,
    check_run,
    dump_of,
    existing_checkpoint,
    load_config,
    one_sentence,
    save_pictures,
    use_tta,
)


def main(argv=None) -> None:
    parser = argument_parser('Test a checkpoint')
    parser.add_argument('checkpoint', type=existing_checkpoint, help='checkpoint, a file or an address')
    parser.add_argument('--out', metavar='FILE.pkl', help='write the predictions to this pickle file')
    parser.add_argument('--show-dir', metavar='FOLDER', help='write pictures of the predictions to this folder')
    parser.add_argument('--tta', action='store_true', help='test with test-time augmentation')
    parser.add_argument('--amp', action='store_true', help='test with automatic mixed precision')
    args = parser.parse_args(argv)
    if args.out is not None and not args.out.endswith(('.pkl', '.pickle')):
        parser.error(f'--out {args.out}: predictions are written as a pickle; give a name that ends in .pkl')

    with one_sentence(args.traceback):
        cfg = load_config(args)
        cfg.load_from = args.checkpoint
        check_run(cfg, args.config, 'test')
        if args.tta:
            use_tta(cfg)
        if args.amp:
            cfg.test_cfg.fp16 = True
        if args.show_dir is not None:
            save_pictures(cfg, args.show_dir)
        if args.check:
            return
        runner = build_runner(cfg)
        if args.out is not None:
            runner.test_evaluator.metrics.append(dump_of(cfg, args.out))
    runner.test()


if __name__ == '__main__':
    main()
