"""Design of the best map for a kernel and a size, with a certificate.

====================  ===========================================================================
module                what it holds
====================  ===========================================================================
problem               what is approximated, where, and how the error counts
bounds                kernels on values, and what no map of a size can beat
lp                    Taylor programs with a trust region; p-norms as cheap scouts
refine                the best cosine map, whatever the signature; of a smooth one directly:
                      interpolation, then levelling
tables                rank-D tables; sines of the intersection kernel
certify               what is proved about a design; the largest error of a map, by attack
multidim, joint       two and three dimensions
anchors               where the anchors of a feature lie; square roots of their kernel
random_features       sizes that the theorems on random features ask for; sparsity of data
api, result           ``design_map`` and its solvers; ``Design``, and designs on disk
====================  ===========================================================================
"""
