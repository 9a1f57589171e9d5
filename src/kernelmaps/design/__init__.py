"""Design of the best map for a kernel and a size, with a certificate.

====================  ===========================================================================
module                what it holds
====================  ===========================================================================
problem, gram         what is approximated, where, and how the error counts: on lags, on values
bounds                what no map of a size can beat
lp                    frequency pools and the paper's two linear programs; Taylor programs with a
                      trust region; p-norms as cheap scouts
refine                the best cosine map, whatever the signature; of a smooth one directly:
                      interpolation, then levelling
tables                rank-D tables (eigen, minimax); the intersection kernel's closed form
certify               what is proved about a design; the largest error of a map, by attack
multidim              two and three dimensions; ``boxes``: their lags, ``joint``: what is designed
anchors               where the anchors of a feature lie; square roots of their kernel
random_features       sizes that the theorems on random features ask for; sparsity of data
api, result, cache    ``design_map`` and its solvers; ``Design``; designs on disk
====================  ===========================================================================
"""
