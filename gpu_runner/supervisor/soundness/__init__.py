"""Is a task sound? Its mutants must fail, its honest kernels pass, and its filters hold.

`soundness` asks an oracle, `outcomes` sums up what became of each mutant.
"""
