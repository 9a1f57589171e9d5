"""Speed and memory beside named peers: ``python -m benchmarks`` or ``make bench``.

Each ``bench_<room>.py`` has a function ``run(bench)`` that calls `Bench.race`, `Bench.measure` and
`Bench.peak` of `benchmarks.harness`; rooms whose races can be run by themselves list them in
``PARTS``. Results go to ``benchmarks/results/<room>.json``; `benchmarks.render` makes
``docs/performance.md`` and the tables in ``docs/records`` from these files.
"""
