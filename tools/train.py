"""Train a model of any host: python tools/train.py CONFIG."""

from ebv_mm.launch import argument_parser, build_runner, check_run, existing_checkpoint, load_config, one_sentence


def main(argv=None) -> None:
    parser = argument_parser('Train a model')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        type=lambda value: value if value == 'auto' else existing_checkpoint(value),
        metavar='CHECKPOINT',
        help='go on from this checkpoint, or from the newest one in the work dir if none is named',
    )
    parser.add_argument('--amp', action='store_true', help='train with automatic mixed precision')
    parser.add_argument('--no-validate', action='store_true', help='do not evaluate during training')
    parser.add_argument(
        '--auto-scale-lr', action='store_true', help='scale the learning rate with the batch, by cfg.auto_scale_lr'
    )
    args = parser.parse_args(argv)

    with one_sentence(args.traceback):
        cfg = load_config(args)
        if args.resume is not None:
            cfg.resume = True
            cfg.load_from = None if args.resume == 'auto' else args.resume
        if args.no_validate:
            cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
        if args.auto_scale_lr:
            if not cfg.get('auto_scale_lr', {}).get('base_batch_size'):
                parser.error('--auto-scale-lr: the config has no auto_scale_lr.base_batch_size; add it')
            cfg.auto_scale_lr.enable = True
        check_run(cfg, args.config, 'train')
        if args.amp:
            cfg.optim_wrapper.type = 'AmpOptimWrapper'
            cfg.optim_wrapper.setdefault('loss_scale', 'dynamic')
        if args.check:
            return
        runner = build_runner(cfg)
    runner.train()


if __name__ == '__main__':
    main()
