"""Design of the best map for a kernel and a size, with a certificate.

====================  ===========================================================================
module                what it holds
====================  ===========================================================================
problem               what is approximated, where, and how the error counts
cosines               the best cosine map, whatever the signature: interpolation and levelling of
                      smooth ones, p-norms from many starts and Taylor programs of others
tables                kernels on a grid of values, what no map of a size can beat, rank-D tables
certify               what is proved about a design
joint                 two and three dimensions
anchors               where the anchors of a feature lie; square roots of their kernel
random_features       sizes that the theorems on random features ask for; sparsity of data
api, result           ``design_map`` and its solvers; ``Design``, and designs on disk
====================  ===========================================================================
"""
